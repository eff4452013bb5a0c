#include <sotto/base/decoded_text.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/file_signature.h>
#include <sotto/base/unpacker.h>

namespace sotto {
namespace {

using namespace std::string_view_literals;

/// As far as a file is looked at to find out what it is.
constexpr std::size_t kDecodedHead = 1024;

/// What Windows-1252 has at 0x80 … 0x9F; what it leaves out stays the control character that it is.
constexpr std::array<char16_t, 32> kWindows = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178};

std::uint8_t byte_of(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto rest = [&](int shift) { put(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0U | point >> 6U);
    rest(0);
  } else if (point < 0x10000) {
    put(0xE0U | point >> 12U);
    rest(6);
    rest(0);
  } else {
    put(0xF0U | point >> 18U);
    rest(12);
    rest(6);
    rest(0);
  }
}

std::string from_windows(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const std::uint8_t byte = byte_of(bytes, at);
    append_utf8(text, byte >= 0x80 && byte < 0xA0 ? kWindows[byte - 0x80U] : byte);
  }
  return text;
}

enum class Order { little, big };

[[noreturn]] void refuse_byte(const std::string& name, std::size_t at, std::string_view reason) {
  throw Error(fmt::format("{}: byte {}: {}", name, at, reason));
}

/// `begin` is where the text begins, behind a byte-order mark.
std::string from_utf16(std::string_view bytes, std::size_t begin, Order order,
                       const std::string& name) {
  if (bytes.size() % 2 != 0) {
    refuse_byte(name, bytes.size(), "damaged UTF-16: the file ends in the middle of a character");
  }
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const std::uint32_t first = byte_of(bytes, at);
    const std::uint32_t second = byte_of(bytes, at + 1);
    return order == Order::little ? second << 8U | first : first << 8U | second;
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t at = begin; at < bytes.size(); at += 2) {
    std::uint32_t point = unit(at);
    if (point >= 0xD800 && point < 0xE000) {
      const std::uint32_t low = at + 2 < bytes.size() ? unit(at + 2) : 0;
      if (point >= 0xDC00 || low < 0xDC00 || low >= 0xE000) {
        refuse_byte(name, at, "damaged UTF-16: half of a pair alone");
      }
      point = 0x10000U + ((point - 0xD800U) << 10U) + (low - 0xDC00U);
      at += 2;
    }
    append_utf8(text, point);
  }
  return text;
}

struct Guess {
  bool utf16 = false;
  Order order = Order::little;
};

/// Texts are mostly of letters below U+0100, which have a zero as one of their two bytes.
Guess guess_utf16(std::string_view head) {
  const std::size_t pairs = std::min(head.size(), kDecodedHead) / 2;
  std::size_t first = 0;
  std::size_t second = 0;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    first += head[2 * pair] == '\0' ? 1U : 0U;
    second += head[2 * pair + 1] == '\0' ? 1U : 0U;
  }
  const auto most = [pairs](std::size_t count) { return 10 * count >= 7 * pairs; };
  const auto few = [pairs](std::size_t count) { return 10 * count <= pairs; };
  if (pairs < 2) {
    return {};
  }
  if (most(second) && few(first)) {
    return {true, Order::little};
  }
  return {most(first) && few(second), Order::big};
}

/// The text as UTF-16, if that is what it is.
bool take_utf16(std::string_view bytes, const std::string& name, DecodedText& decoded) {
  if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)) {
    throw Error(fmt::format("{}: it is UTF-32; save it as UTF-8", name));
  }
  const bool little = bytes.starts_with("\xFF\xFE"sv);
  decoded.byte_order_mark = little || bytes.starts_with("\xFE\xFF"sv);
  const Guess guess = decoded.byte_order_mark ? Guess{true, little ? Order::little : Order::big}
                                              : guess_utf16(bytes);
  if (guess.utf16) {
    decoded.encoding = guess.order == Order::little ? "UTF-16LE" : "UTF-16BE";
    decoded.text = from_utf16(bytes, decoded.byte_order_mark ? 2 : 0, guess.order, name);
  }
  return guess.utf16;
}

/// Which formats a reader does not take.
enum class Refused { packed, all };

void refuse_formats(std::string_view bytes, const std::string& name, Refused refused,
                    bool unpacked) {
  const auto found = find_signature(bytes.substr(0, kDecodedHead));
  if (found && (found->packed || refused == Refused::all)) {
    throw Error(fmt::format("{}: {}it is {}; {}", name, unpacked ? "unpacked, " : "", found->format,
                            found->advice));
  }
}

/// Refuses formats, packed and unpacked.
Unpacked unpack_known(std::string bytes, const std::string& name, std::uint64_t max_bytes,
                      Refused refused) {
  refuse_formats(bytes, name, refused, /*unpacked=*/false);
  Unpacked unpacked = unpack(std::move(bytes), name, max_bytes);
  if (unpacked.members > 0) {
    refuse_formats(unpacked.bytes, name, refused, /*unpacked=*/true);
  }
  return unpacked;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::uint8_t lead = byte_of(text, at);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xC2 && lead < 0xE0 ? 1
                             : lead >= 0xE0 && lead < 0xF0 ? 2
                             : lead >= 0xF0 && lead < 0xF5 ? 3
                                                           : text.size();
    if (more > text.size() - at - 1) {
      return false;
    }
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte_of(text, at + k) & 0xC0U) != 0x80U) {
        return false;
      }
    }
    // Longer forms of short characters, halves of pairs, and what lies beyond U+10FFFF.
    const std::uint8_t second = more > 0 ? byte_of(text, at + 1) : std::uint8_t{0};
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    at += more + 1;
  }
  return true;
}

DecodedText decode_text(std::string bytes, const std::string& name, std::uint64_t max_bytes) {
  Unpacked unpacked = unpack_known(std::move(bytes), name, max_bytes, Refused::all);
  DecodedText decoded;
  decoded.gzip_members = unpacked.members;
  if (take_utf16(unpacked.bytes, name, decoded)) {
    return decoded;
  }
  std::string_view text = unpacked.bytes;
  decoded.byte_order_mark = skip_byte_order_mark(text);
  unpacked.bytes.erase(0, unpacked.bytes.size() - text.size());
  decoded.text = std::move(unpacked.bytes);
  if (!is_utf8(decoded.text)) {
    decoded.encoding = "Windows-1252";
    decoded.text = from_windows(decoded.text);
  }
  return decoded;
}

std::string unpack_text(std::string bytes, const std::string& name, std::uint64_t max_bytes) {
  return unpack_known(std::move(bytes), name, max_bytes, Refused::packed).bytes;
}

}  // namespace sotto
