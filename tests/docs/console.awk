# SPDX-License-Identifier: Apache-2.0
# Copies a Markdown file with the output of its `console` blocks made anew. A line "$ COMMAND" is run by the shell, stdout
# and stderr together as a terminal shows them; lines up to the next "$ " or the closing fence are its output.
# COMMAND must begin with vlmest or ./run. Exits 1 where one does not, crashes, or is not found.
function run(command, line) {
  sub(/^\.\/run/, "vlmest", command)
  if (command !~ /^vlmest( |$)/) {
    print FILENAME ":" FNR ": only vlmest and ./run are run in a console block (mark others sh)" > "/dev/stderr"
    failed = 1
    return
  }
  command = "( " command "\n) 2>&1; s=$?; [ $s -lt 126 ] || echo \"[exit $s]\""
  while ((command | getline line) > 0) {
    print line
    if (line ~ /^\[exit [0-9]+\]$/) {
      print FILENAME ":" FNR ": the command crashed, " line > "/dev/stderr"
      failed = 1
    }
  }
  close(command)
}
/^ *```/ {
  inside = !inside && $0 ~ /^ *```console *$/
  print
  next
}
!inside { print; next }
/^\$ / {
  print
  fflush()
  run(substr($0, 3))
}
END { exit failed }
