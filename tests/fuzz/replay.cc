// Runs a target on every file of a folder: `fuzz_replay TARGET FOLDER`. Without arguments, checks
// that every family of compressors has a target.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sotto/compress/registry.h>

#include "harness.h"

namespace {

using sotto_fuzz::Target;
using sotto_fuzz::targets;

int check_families() {
  for (const sotto::CompressorInfo& info : sotto::compressors()) {
    if (std::ranges::find(targets(), info.name, &Target::name) == targets().end()) {
      std::fprintf(stderr, "no target for %s\n", std::string(info.name).c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return check_families();
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
