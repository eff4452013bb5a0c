#include <sotto/base/bytes.h>

#include <algorithm>
#include <limits>

#include <sotto/base/byte_window.h>

namespace sotto {
namespace {

thread_local ByteWindow* open_window = nullptr;

}  // namespace

ByteWindow::ByteWindow(std::size_t first, std::size_t count, std::vector<std::byte>& part)
    : first_(first), count_(count), part_(part) {
  check(open_window == nullptr, "one window is open at a time");
  open_window = this;
}

ByteWindow::~ByteWindow() { open_window = nullptr; }

void ByteWindow::take(std::size_t before, std::span<const std::byte> raw) {
  const std::size_t begin = std::clamp(first_, before, before + raw.size());
  const std::size_t end = std::clamp(first_ + count_, begin, before + raw.size());
  const auto inside = raw.subspan(begin - before, end - begin);
  part_.insert(part_.end(), inside.begin(), inside.end());
}

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
    if (open_window != nullptr) {
      open_window->take(counted_, raw);
    }
    counted_ += raw.size();
  } else {
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
}

}  // namespace sotto
