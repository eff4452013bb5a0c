#include <sotto/trainers/launch/private_directory.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

std::string make_private_directory() {
  const char* parent = std::getenv("TMPDIR");
  auto path =
      fmt::format("{}/sotto-XXXXXX", parent == nullptr || *parent == '\0' ? "/tmp" : parent);
  if (::mkdtemp(path.data()) == nullptr) {
    throw Error(fmt::format("TMPDIR: no directory {} can be made: {}", path, std::strerror(errno)));
  }
  return path;
}

}  // namespace

// Should no process be given, nobody looks after the directory when we are killed.
PrivateDirectory::PrivateDirectory()
    : path_(make_private_directory()), helper_([this](int line) {
        if (read_byte(line) == 0) {
          std::error_code ignored;
          std::filesystem::remove_all(path_, ignored);
        }
      }) {}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sotto
