#include <sotto/kernels/vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/float_vector.h>

namespace sotto {

float* Ops::allocate(std::size_t count) const {
  if (count == 0) {
    return nullptr;
  }
  float* floats = LineAllocator<float>().allocate(count);
  std::fill_n(floats, count, 0.0F);
  return floats;
}

void Ops::release(float* floats, std::size_t count) const {
  LineAllocator<float>().deallocate(floats, count);
}

void Ops::to_host(std::span<const float> x, std::span<std::byte> bytes) const {
  check(bytes.size() == x.size_bytes(), "to_host: lengths differ");
  ByteWriter(bytes).write_bytes(std::as_bytes(x));
}

void Ops::from_host(std::span<const std::byte> bytes, std::span<float> y) const {
  check(bytes.size() == y.size_bytes(), "from_host: lengths differ");
  ByteReader(bytes).read_into(y);
}

float element(std::span<const float> x, std::size_t at, const Ops& ops) {
  float value = 0;
  ops.to_host(x.subspan(at, 1), std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::span<const float> on_host(std::span<const float> x, const Ops& ops, std::vector<float>& room) {
  if (ops.on_host()) {
    return x;
  }
  room.resize(x.size());
  ops.to_host(x, std::as_writable_bytes(std::span(room)));
  return room;
}

Vector::Vector(std::size_t count, const Ops& ops)
    : ops_(&ops), floats_(ops.allocate(count)), count_(count) {}

Vector::Vector(std::span<const float> x, const Ops& ops) : Vector(x.size(), ops) {
  ops.copy(x, *this);
}

Vector::~Vector() {
  if (floats_ != nullptr) {
    ops_->release(floats_, count_);
  }
}

Vector::Vector(Vector&& other) noexcept
    : ops_(other.ops_),
      floats_(std::exchange(other.floats_, nullptr)),
      count_(std::exchange(other.count_, 0)) {}

Vector& Vector::operator=(Vector&& other) noexcept {
  std::swap(ops_, other.ops_);
  std::swap(floats_, other.floats_);
  std::swap(count_, other.count_);
  return *this;
}

}  // namespace sotto
