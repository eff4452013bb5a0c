#include "z85.h"

#include <array>
#include <cstdint>

#include <sotto/base/check.h>

namespace sotto::internal {
namespace {

constexpr std::string_view kAlphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

}  // namespace

std::string z85(std::span<const std::byte> bytes) {
  check(bytes.size() % 4 == 0, "Z85 takes 4 bytes at a time");
  std::string text;
  text.reserve(bytes.size() / 4 * 5);  // in one place: it may be a secret
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes.subspan(at, 4)) {
      value = value << 8U | std::to_integer<std::uint32_t>(byte);
    }
    std::array<char, 5> digits{};
    for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
      *digit = kAlphabet[value % 85];
      value /= 85;
    }
    text.append(digits.data(), digits.size());
  }
  return text;
}

bool read_z85(std::string_view text, std::span<std::byte> bytes) {
  check(bytes.size() % 4 == 0, "Z85 gives 4 bytes at a time");
  if (text.size() != bytes.size() / 4 * 5) {
    return false;
  }
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint64_t value = 0;
    for (const char c : text.substr(at / 4 * 5, 5)) {
      const auto digit = kAlphabet.find(c);
      if (digit == std::string_view::npos) {
        return false;
      }
      value = value * 85 + digit;
    }
    if (value > 0xFFFFFFFFU) {
      return false;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
    }
  }
  return true;
}

}  // namespace sotto::internal
