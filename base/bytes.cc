#include <sotto/base/bytes.h>

#include <limits>

namespace sotto {

std::string ByteReader::read_string(std::size_t max_bytes) {
  const auto size = read<std::uint32_t>();
  if (size > max_bytes) {
    failed_ = true;
    return {};
  }
  const auto raw = take(size);
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

void ByteBuffer::write_string(std::string_view text) {
  check(text.size() <= std::numeric_limits<std::uint32_t>::max(), "a string of 4 GiB or more");
  write(static_cast<std::uint32_t>(text.size()));
  append(std::as_bytes(std::span(text.data(), text.size())));
}

void ByteBuffer::append(std::span<const std::byte> raw) {
  if (counts_) {
    counted_ += raw.size();
  } else {
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
}

}  // namespace sotto
