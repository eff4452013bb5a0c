#include <sotto/comm/run_keys.h>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto {

std::optional<std::uint64_t> session_mark(std::span<const std::byte> value) {
  ByteReader in(value);
  const auto mark = in.read<std::uint64_t>();
  return in.finished() ? std::optional(mark) : std::nullopt;
}

std::string key_in_session(std::uint64_t mark, std::string_view key) {
  return fmt::format("{:016x}/{}", mark, key);
}

std::string barrier_key(std::string_view barrier) { return fmt::format("{}/go", barrier); }

}  // namespace sotto
