// What a text file holds, as UTF-8, whatever it was written as: gzip with any number of members,
// UTF-8, UTF-16 with or without a byte-order mark, or the letters of old Windows programs. Formats
// that are no text are refused by name (file_signature.h).
//
// Everything that reads text of users goes through here, above the reader of bytes and below the
// parser. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sotto {

/// The bytes that a text has at most, unless the caller says otherwise.
inline constexpr std::uint64_t kMaxDecodedBytes = std::uint64_t{1} << 30;

/// A text, and what it was.
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
                        std::uint64_t max_bytes = kMaxDecodedBytes);
/// The bytes of the same file, unpacked where they are gzip, and nothing else: for those who learn
/// bytes. Refuses, as `decode_text` does, what is packed in another way.
std::string unpack_text(std::string bytes, const std::string& name,
                        std::uint64_t max_bytes = kMaxDecodedBytes);

/// Whether all of it is valid UTF-8.
bool is_utf8(std::string_view text);

}  // namespace sotto
