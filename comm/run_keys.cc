#include <sotto/comm/run_keys.h>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto {

std::string node_key(std::string_view topic, Rank node) {
  return fmt::format("{}/{}", topic, node);
}

std::string node_key_for(std::string_view topic, Rank node, Rank reader) {
  return fmt::format("{}/{}-{}", topic, node, reader);
}

std::string node_key_for_all(std::string_view topic, Rank node) {
  return fmt::format("{}/{}-all", topic, node);
}

std::string first_key(std::string_view topic) { return fmt::format("{}/any", topic); }

std::optional<std::uint64_t> session_mark(std::span<const std::byte> value) {
  ByteReader in(value);
  const auto mark = in.read<std::uint64_t>();
  return in.finished() ? std::optional(mark) : std::nullopt;
}

std::string key_in_session(std::uint64_t mark, std::string_view key) {
  return fmt::format("{:016x}/{}", mark, key);
}

std::string given_up_key() { return first_key("given-up"); }

std::string barrier_key(std::string_view barrier) { return fmt::format("{}/go", barrier); }

}  // namespace sotto
