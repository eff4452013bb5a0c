// Runs a target on every file of a folder: `fuzz_replay TARGET FOLDER`. `fuzz_replay CORPUS` checks
// that every target of this build has a folder with inputs in CORPUS.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "harness.h"

namespace {

using sotto_fuzz::Target;
using sotto_fuzz::targets;

int check_corpus(const std::filesystem::path& corpus) {
  int missing = 0;
  for (const Target& target : targets()) {
    const auto folder = corpus / target.name;
    std::error_code none;
    const bool there = std::filesystem::is_directory(folder, none);
    if (!there || std::filesystem::is_empty(folder, none)) {
      std::fprintf(stderr, "no input for the target %s: run make_corpus, and add %s\n",
                   std::string(target.name).c_str(), folder.c_str());
      ++missing;
    }
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    return check_corpus(argv[1]);
  }
  if (argc != 3) {
    std::fprintf(stderr, "usage: fuzz_replay TARGET FOLDER | fuzz_replay CORPUS\n");
    return 2;
  }
  const auto target = std::ranges::find(targets(), argv[1], &Target::name);
  if (target == targets().end()) {
    std::fprintf(stderr, "no target %s\n", argv[1]);
    return 1;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // names the culprit if the next line aborts
    target->run(target->name, std::as_bytes(std::span(bytes)));
    ++files;
  }
  return files > 0 ? 0 : 1;
}
