# SPDX-License-Identifier: Apache-2.0
# Copies a Markdown file with the output of its `console` blocks made anew. A line "$ COMMAND" is run by the shell, stdout
# and stderr together as a terminal shows them; lines up to the next "$ " or the closing fence are its output.
# COMMAND must begin with vlmest or ./run. Exits 1 where one does not, crashes, or is not found.
# A fenced block below "<!-- copy of FILE -->" gets that file, without its licence line. What stands between
# "<!-- output of COMMAND -->" and "<!-- end of output -->" is what the command prints, Markdown itself.
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
function copy(file, line, found) {
  while ((getline line < file) > 0) {
    found = 1
    if (line !~ /SPDX-License-Identifier/) print line
  }
  close(file)
  if (!found) {
    print FILENAME ":" FNR ": there is no " file " to copy" > "/dev/stderr"
    failed = 1
  }
}
/^<!-- output of .* -->$/ && !inside {
  print
  fflush()
  command = $0
  sub(/^<!-- output of /, "", command)
  sub(/ -->$/, "", command)
  run(command)
  replaced = FNR
  next
}
/^<!-- end of output -->$/ { replaced = 0 }
replaced { next }
/^<!-- copy of .* -->$/ {
  print
  source = $4
  next
}
/^ *```/ && source {
  print
  if (copied) source = copied = ""
  else {
    copy(source)
    copied = 1
  }
  next
}
copied { next }
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
END {
  if (replaced) print FILENAME ":" replaced ": no <!-- end of output --> below" > "/dev/stderr"
  exit failed || replaced
}
