// SPDX-License-Identifier: Apache-2.0
// alone LIB BUILD SOURCE: whether each header below LIB that SOURCE includes would compile alone, read as the compile
// commands in BUILD say.
//
// A compiler that is given one header after the other reads what they have in common a thousand times. Here Clang reads
// all of them once, and says of each name which declaration it has found: one that stands in the header itself or in
// what it includes, or else the header does not compile alone. So it is with types that have to be complete, and with
// macros. Concepts, for which libclang has no cursors before its release 16, are looked for by name.
//
// What depends on a template's arguments is looked up where they are known, by what the arguments are of: such calls
// need no declaration before them, and what the compiler makes of a template is not asked again for each argument. Of
// templates of variables libclang shows nothing else: their values are not read.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <clang-c/CXCompilationDatabase.h>
#include <clang-c/Index.h>

namespace fs = std::filesystem;

namespace {

std::string text_of(CXString s) {
  const char* c = clang_getCString(s);
  std::string text = c == nullptr ? "" : c;
  clang_disposeString(s);
  return text;
}

[[noreturn]] void die(const std::string& why) {
  std::cerr << "error: " << why << "\n";
  std::exit(2);
}

/// The arguments of SOURCE's compile command behind the compiler, without what it writes.
std::vector<std::string> arguments_of(const char* build, const char* source) {
  auto failed = CXCompilationDatabase_NoError;
  const CXCompilationDatabase all = clang_CompilationDatabase_fromDirectory(build, &failed);
  if (failed != CXCompilationDatabase_NoError) die(std::string("no compile_commands.json in ") + build);
  const CXCompileCommands of = clang_CompilationDatabase_getCompileCommands(all, source);
  if (clang_CompileCommands_getSize(of) == 0) die(std::string("no compile command of ") + source);
  const CXCompileCommand command = clang_CompileCommands_getCommand(of, 0);
  std::vector<std::string> arguments;
  for (unsigned i = 1; i < clang_CompileCommand_getNumArgs(command); ++i) {
    const std::string argument = text_of(clang_CompileCommand_getArg(command, i));
    if (argument == "-o") {
      ++i;
    } else if (argument != "-c" && argument != "--" && argument != source) {
      arguments.push_back(argument);
    }
  }
  clang_CompileCommands_dispose(of);
  clang_CompilationDatabase_dispose(all);
  return arguments;
}

struct SameCursor {
  std::size_t operator()(const CXCursor& c) const { return clang_hashCursor(c); }
  bool operator()(const CXCursor& a, const CXCursor& b) const { return clang_equalCursors(a, b) != 0; }
};

/// Where something stands: `header` counts the headers of `Headers`, -1 is outside of them.
struct Place {
  int header = -1;
  unsigned line = 0, offset = 0;
};

/// The headers below LIB, and nlohmann's as one, with what they include. The standard library's are headers.standard's.
class Headers {
 public:
  explicit Headers(const fs::path& lib) : lib_(fs::canonical(lib).string() + "/") {}

  Place place(CXSourceLocation at) {
    CXFile file = nullptr;
    Place p;
    clang_getFileLocation(at, &file, &p.line, nullptr, &p.offset);
    p.header = number(file);
    return p;
  }
  Place place(CXCursor c) { return place(clang_getCursorLocation(c)); }

  int number(CXFile file) {
    if (file == nullptr) return -1;
    const auto [at, fresh] = numbers_.emplace(file, -1);
    if (!fresh) return at->second;
    const std::string path = fs::path(text_of(clang_getFileName(file))).lexically_normal().string();
    const bool json = path.find("/nlohmann/") != path.npos;
    if (!json && !path.starts_with(lib_)) return -1;
    const auto known = std::find(names_.begin(), names_.end(), "nlohmann");
    if (json && known != names_.end()) return at->second = static_cast<int>(known - names_.begin());
    names_.push_back(json ? "nlohmann" : path.substr(lib_.size()));
    files_.push_back(file);
    includes_.emplace_back();
    return at->second = static_cast<int>(names_.size()) - 1;
  }

  void include(int by, int what) {
    if (by >= 0 && what >= 0) includes_[static_cast<std::size_t>(by)].insert(what);
  }

  /// What each header includes, by itself or through others.
  void close() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::vector<bool> seen(names_.size());
      std::vector<std::size_t> next{i};
      seen[i] = true;
      while (!next.empty()) {
        const std::size_t header = next.back();
        next.pop_back();
        for (const int j : includes_[header])
          if (const auto included = static_cast<std::size_t>(j); !seen[included]) {
            seen[included] = true;
            next.push_back(included);
          }
      }
      closures_.push_back(std::move(seen));
    }
  }

  bool reads(int header, int other) const {
    return closures_[static_cast<std::size_t>(header)][static_cast<std::size_t>(other)];
  }
  const std::string& name(int header) const { return names_[static_cast<std::size_t>(header)]; }
  int size() const { return static_cast<int>(names_.size()); }
  std::string path(int header) const { return lib_ + name(header); }
  bool once(CXTranslationUnit unit, int header) const {
    return clang_isFileMultipleIncludeGuarded(unit, files_[static_cast<std::size_t>(header)]) != 0;
  }

 private:
  std::string lib_;
  std::vector<std::string> names_;
  std::vector<CXFile> files_;
  std::vector<std::set<int>> includes_;
  std::vector<std::vector<bool>> closures_;
  std::unordered_map<CXFile, int> numbers_;
};

/// A name in a header and the declaration that it was found to be of; `complete`: the definition of a type.
struct Use {
  Place at;
  CXCursor of;
  bool complete = false;
};

struct Reading {
  Headers& headers;
  /// The headers that declare an entity, by its first declaration.
  std::unordered_map<CXCursor, std::set<int>, SameCursor, SameCursor> declared;
  std::vector<Use> uses;
  /// Where what may be the template of a variable was read: others at the same place were made of it.
  std::map<std::pair<int, unsigned>, CXCursor> templates;
  /// Whether what was last named is a namespace or type, and stands in front of a name of the same expression.
  CXCursor qualified = clang_getNullCursor();
};

/// Whether the compiler made `c` of a template, for arguments.
bool is_made(Reading& r, CXCursor c, CXCursorKind kind, const Place& at) {
  const CXCursor of = clang_getSpecializedCursorTemplate(c);
  if (!clang_Cursor_isNull(of)) return clang_equalLocations(clang_getCursorLocation(of), clang_getCursorLocation(c));
  if (kind != CXCursor_UnexposedDecl) return false;
  const auto [known, fresh] = r.templates.emplace(std::pair(at.header, at.offset), c);
  return !fresh && !clang_equalCursors(known->second, c);
}

/// The definition that a type needs where an object of it is: of arrays, of their elements.
CXCursor definition_of(CXType type) {
  type = clang_getCanonicalType(type);
  while (type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray)
    type = clang_getCanonicalType(clang_getArrayElementType(type));
  if (type.kind != CXType_Record) return clang_getNullCursor();
  return clang_getCursorDefinition(clang_getTypeDeclaration(type));
}

/// The type of the object that there is at `c`, or an invalid one: a call's is what the function gives, which may be a
/// reference to what is not complete.
CXType object_of(CXCursor c, CXCursorKind kind) {
  if (kind == CXCursor_CallExpr) return clang_getResultType(clang_getCursorType(clang_getCursorReferenced(c)));
  const bool object = kind == CXCursor_VarDecl || kind == CXCursor_FieldDecl || kind == CXCursor_InitListExpr ||
                      kind == CXCursor_CXXBaseSpecifier;
  return object ? clang_getCursorType(c) : clang_getCursorType(clang_getNullCursor());
}

void use(Reading& r, const Place& at, CXCursor of, bool complete) {
  if (clang_Cursor_isNull(of) || clang_getCursorKind(of) == CXCursor_Namespace) return;
  const Place there = r.headers.place(of);
  if (there.header >= 0 && there.header != at.header) r.uses.push_back({at, of, complete});
}

CXChildVisitResult read(CXCursor c, CXCursor parent, CXClientData data) {
  auto& r = *static_cast<Reading*>(data);
  const Place at = r.headers.place(c);
  const CXCursorKind kind = clang_getCursorKind(c);
  if (kind == CXCursor_InclusionDirective) {
    r.headers.include(at.header, r.headers.number(clang_getIncludedFile(c)));
    return CXChildVisit_Continue;
  }
  if (at.header < 0 || r.headers.name(at.header) == "nlohmann") return CXChildVisit_Continue;
  if (clang_isDeclaration(kind)) {
    if (is_made(r, c, kind, at)) return CXChildVisit_Continue;
    if (kind != CXCursor_Namespace) r.declared[clang_getCanonicalCursor(c)].insert(at.header);
  } else if (kind == CXCursor_NamespaceRef) {
    r.qualified = parent;
  } else if (kind == CXCursor_OverloadedDeclRef) {
    // Behind a namespace the name has to be one of it, whatever the arguments.
    if (clang_equalCursors(r.qualified, parent) && clang_getNumOverloadedDecls(c) > 0) r.uses.push_back({at, c});
  } else {
    use(r, at, clang_getCursorReferenced(c), false);
  }
  use(r, at, definition_of(object_of(c, kind)), true);
  return CXChildVisit_Recurse;
}

/// Whether the header of a use knows what is used there.
bool knows(Reading& r, const Use& u, CXCursor of) {
  const Place there = r.headers.place(of);
  if (there.header < 0 || r.headers.reads(u.at.header, there.header)) return true;
  if (u.complete) return false;
  const auto declared = r.declared.find(clang_getCanonicalCursor(of));
  return declared != r.declared.end() && std::any_of(declared->second.begin(), declared->second.end(),
                                                     [&](int header) { return r.headers.reads(u.at.header, header); });
}

bool knows(Reading& r, const Use& u) {
  if (clang_getCursorKind(u.of) != CXCursor_OverloadedDeclRef) return knows(r, u, u.of);
  for (unsigned i = 0; i < clang_getNumOverloadedDecls(u.of); ++i)
    if (knows(r, u, clang_getOverloadedDecl(u.of, i))) return true;
  return false;
}

/// (header and what it lacks) of the concepts, which are read as words.
void find_concepts(Reading& r, std::set<std::pair<std::string, std::string>>& missing) {
  std::vector<std::string> texts;
  std::map<std::string, int> concepts;
  const std::regex declaration(R"(\bconcept (\w+) =)"), word(R"(\w+)"), comment("//[^\n]*");
  for (int header = 0; header < r.headers.size(); ++header) {
    std::ifstream in(r.headers.path(header));
    texts.push_back(std::regex_replace(std::string(std::istreambuf_iterator<char>(in), {}), comment, ""));
    const std::string& text = texts.back();
    for (std::sregex_iterator at(text.begin(), text.end(), declaration); at != std::sregex_iterator(); ++at)
      concepts[(*at)[1]] = header;
  }
  for (int header = 0; header < r.headers.size(); ++header) {
    const std::string& text = texts[static_cast<std::size_t>(header)];
    for (std::sregex_iterator at(text.begin(), text.end(), word); at != std::sregex_iterator(); ++at)
      if (const auto found = concepts.find(at->str());
          found != concepts.end() && !r.headers.reads(header, found->second))
        missing.emplace(r.headers.name(header), found->first + " of " + r.headers.name(found->second));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) die("alone LIB BUILD SOURCE");
  const std::vector<std::string> arguments = arguments_of(argv[2], argv[3]);
  std::vector<const char*> plain{"-resource-dir", VLMEST_CLANG_RESOURCES};
  for (const std::string& argument : arguments) plain.push_back(argument.c_str());
  const CXIndex index = clang_createIndex(0, 0);
  CXTranslationUnit unit = nullptr;
  if (clang_parseTranslationUnit2(index, argv[3], plain.data(), static_cast<int>(plain.size()), nullptr, 0,
                                  CXTranslationUnit_DetailedPreprocessingRecord, &unit) != CXError_Success)
    die(std::string("libclang cannot read ") + argv[3]);
  int bad = 0;
  for (unsigned i = 0; i < clang_getNumDiagnostics(unit); ++i) {
    const CXDiagnostic said = clang_getDiagnostic(unit, i);
    bad += clang_getDiagnosticSeverity(said) >= CXDiagnostic_Error;
    std::cout << text_of(clang_formatDiagnostic(said, clang_defaultDiagnosticDisplayOptions())) << "\n";
    clang_disposeDiagnostic(said);
  }

  Headers headers(argv[1]);
  Reading r{headers, {}, {}, {}};
  clang_visitChildren(clang_getTranslationUnitCursor(unit), read, &r);
  headers.close();
  std::set<std::pair<std::string, std::string>> missing;
  for (const Use& u : r.uses)
    if (!knows(r, u)) {
      const CXCursor of =
          clang_getCursorKind(u.of) == CXCursor_OverloadedDeclRef ? clang_getOverloadedDecl(u.of, 0) : u.of;
      missing.emplace(headers.name(u.at.header) + ":" + std::to_string(u.at.line),
                      text_of(clang_getCursorSpelling(of)) + " of " + headers.name(headers.place(of).header));
    }
  find_concepts(r, missing);
  for (const auto& [header, what] : missing) std::cout << header << " uses " << what << ", which it does not include\n";
  for (int header = 0; header < headers.size(); ++header)
    if (!headers.once(unit, header) && ++bad)
      std::cout << headers.name(header) << " does harm where it is included twice\n";
  std::cout << headers.size() << " headers, " << r.uses.size() << " names of other headers, "
            << (missing.empty() && bad == 0 ? "all known" : std::to_string(missing.size()) + " unknown") << "\n";
  clang_disposeTranslationUnit(unit);
  clang_disposeIndex(index);
  return !missing.empty() || bad > 0;
}
