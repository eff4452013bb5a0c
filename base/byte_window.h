// Copies a part of what a saver writes, and nothing else of it: a long state can be copied piece by
// piece, without room for all of it.
//
// Thread safety: one thread at a time for each saver. Errors: none.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>

namespace sotto {

/// While it lives, buffers of its thread that only count (ByteBuffer::size_of) also append to
/// `part` those bytes that lie in the window. One at a time.
class ByteWindow {
 public:
  /// The window has `count` bytes, from `first` on.
  ByteWindow(std::size_t first, std::size_t count, std::vector<std::byte>& part);
  ~ByteWindow();
  ByteWindow(const ByteWindow&) = delete;
  ByteWindow& operator=(const ByteWindow&) = delete;

  /// A buffer that has counted `before` bytes counts these, too.
  void take(std::size_t before, std::span<const std::byte> raw);

 private:
  std::size_t first_;
  std::size_t count_;
  std::vector<std::byte>& part_;
};

/// Appends to `part` the `count` bytes from `first` on of what `save` writes into the buffer that
/// it is given; fewer where it writes fewer. Takes as long as copying these, and as walking over
/// the rest by the spans in which it is written.
template <std::invocable<ByteBuffer&> Save>
void copy_part(const Save& save, std::size_t first, std::size_t count,
               std::vector<std::byte>& part) {
  const ByteWindow window(first, count, part);
  static_cast<void>(ByteBuffer::size_of(save));
}

}  // namespace sotto
