// Decodes a text file to UTF-8. The file may be gzip with any number of members, UTF-8, UTF-16 with
// or without a byte-order mark, or Windows-1252. Formats other than text are refused by name
// (file_signature.h).
//
// Every reader of users' text decodes it here, between the reader of bytes and the parser. Pure
// functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sotto {

/// The bytes that a text has at most, unless the caller says otherwise.
inline constexpr std::uint64_t kMostDecodedBytes = std::uint64_t{1} << 30;

/// A text, and the encoding and packing of its file.
struct DecodedText {
  std::string text;
  std::string_view encoding = "UTF-8";  ///< "UTF-16LE", "UTF-16BE", "Windows-1252"
  bool byte_order_mark = false;
  std::size_t gzip_members = 0;  ///< 0: it was not packed
};

/// `bytes` are those of the file that messages call `name`. Throws Error, naming the file, the
/// place and what would do, for a format that is no text, a damaged gzip stream, damaged UTF-16,
/// UTF-32, and a text that has more than `max_bytes` unpacked.
DecodedText decode_text(std::string bytes, const std::string& name,
                        std::uint64_t max_bytes = kMostDecodedBytes);
/// The bytes of a file, unpacked if they are gzip and otherwise unchanged, for models that learn
/// bytes. Refuses other packed formats, as `decode_text` does.
std::string unpack_text(std::string bytes, const std::string& name,
                        std::uint64_t max_bytes = kMostDecodedBytes);

/// Whether all of it is valid UTF-8.
bool is_utf8(std::string_view text);

}  // namespace sotto
