// Reads files for all other readers: plain files and, for files that people name, pipes. Bounded in
// bytes and in time: a folder, a device and a socket are refused, and so is a pipe without a
// writer. A signal that the process handles ends a wait.
//
//   sotto train --config <(ssh host cat run.toml)
//
// Messages of faults leave out the path; the caller adds the name that its user knows.
//
// Thread safety: an object belongs to one thread; functions are thread-safe.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/status.h>

namespace sotto {

/// The kinds of input that a reader accepts, and how long it waits for them.
struct InputOptions {
  bool pipes = true;                          ///< false: from plain files alone
  std::chrono::milliseconds nobody{10'000};   ///< how long a pipe may be without a writer
  std::chrono::milliseconds silence{60'000};  ///< how long a pipe's writer may be silent
};

/// For files that programs write for themselves: keys, checkpoints, states.
inline constexpr InputOptions kPlainFiles = {.pipes = false};

class InputFile {
 public:
  /// Opens a file; does not wait for a pipe's writer.
  static Result<InputFile> open(const std::string& path, const InputOptions& options = {});

  /// Fills `out`, or less where the input ends: how many bytes it is.
  Result<std::size_t> read(std::span<std::byte> out);
  /// Reads the bytes available now, at least one; returns their number, 0 at the end of the input.
  Result<std::size_t> read_some(std::span<std::byte> out);
  /// Asks the system anew for facts().
  Status refresh_facts();

  bool pipe() const { return S_ISFIFO(facts_.st_mode); }
  /// Whether the input is a pipe without a name in any folder, as those of <(COMMAND) are.
  bool nameless() const;
  /// The result of fstat(2) when the file was opened.
  const struct stat& facts() const { return facts_; }
  /// Bytes of a plain file; of a pipe 0.
  std::uint64_t size() const { return static_cast<std::uint64_t>(facts_.st_size); }

 private:
  InputFile(FileDescriptor file, const struct stat& facts, const InputOptions& options)
      : file_(std::move(file)), facts_(facts), options_(options) {}
  /// Waits until the input is readable or at its end.
  Status await(std::chrono::milliseconds patience, const char* otherwise);
  /// Whether a writer opened the pipe and closed it without writing.
  bool hung_up() const;

  FileDescriptor file_;
  struct stat facts_;
  InputOptions options_;
  bool heard_ = false;  ///< something came
};

/// The whole input, `most` bytes at most. A pipe can be read only once, so its bytes are kept: a
/// second read of the same pipe in this process returns them, unless a writer has added more. An
/// empty pipe is refused: the command behind it has failed.
Result<std::string> read_input(const std::string& path, std::uint64_t most,
                               const InputOptions& options = {});

/// The whole of an open file, `most` bytes at most, so that checks of the open file hold for the
/// bytes read. Call it once.
Result<std::string> read_input(InputFile& file, std::uint64_t most);

/// A whole plain file, `most` bytes at most.
Result<std::vector<std::byte>> read_bytes(const std::string& path, std::uint64_t most);

/// The first line, without its end; `most` bytes at most. Later bytes are neither awaited nor
/// counted. For a pipe without a name, read_input still returns the whole input.
Result<std::string> read_first_line(const std::string& path, std::uint64_t most,
                                    const InputOptions& options = {});

}  // namespace sotto
