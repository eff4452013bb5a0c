// A file's bytes, unpacked where it is gzip (RFC 1952), with any number of members.
//
// Memory is in proportion to the bytes read. A damaged stream gives an Error that names the file
// and the place. One thread at a time; views the packed bytes, which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sotto {

class Unpacker {
 public:
  /// `name` is what messages call the file.
  Unpacker(std::string_view bytes, std::string name);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// Fills `out`, and less of it only at the end of the input. Throws Error for a damaged stream,
  /// and for bytes after a member that are not another member.
  std::size_t read(std::span<char> out);

  /// The most bytes that the file can hold, unpacked.
  std::uint64_t capacity() const;
  /// Members begun so far; 0 where the file is not packed.
  std::size_t members() const { return members_; }
  /// The place of the `at`-th byte read: its offset in the file if it opens a member, else its
  /// offset in the unpacked bytes.
  std::uint64_t place_of(std::uint64_t at) const;

 private:
  struct Stream;

  [[noreturn]] void refuse_byte(std::uint64_t place, std::string_view reason) const;
  std::size_t unpack_into(std::span<char> out);
  /// Goes on to the member behind the one that has ended; false at the end of the file.
  bool next_member();
  std::uint64_t taken() const;

  std::string_view bytes_;
  std::string name_;
  std::unique_ptr<Stream> stream_;  // none where the file is not packed
  std::size_t members_ = 0;
  std::uint64_t at_ = 0;            // bytes handed out
  std::uint64_t member_file_ = 0;   // where the last member begins, in the file
  std::uint64_t member_begin_ = 0;  // and in what was unpacked
  bool ended_ = false;
};

/// Whether a file that begins so is packed by gzip.
inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

/// A file's bytes, and how they were packed.
struct Unpacked {
  std::string bytes;
  std::size_t members = 0;  ///< of gzip
};

/// All that `bytes` hold, unpacked if they are packed. Throws Error, naming the file, for a damaged
/// stream and for more than `max_bytes`.
Unpacked unpack(std::string bytes, const std::string& name, std::uint64_t max_bytes);

}  // namespace sotto
