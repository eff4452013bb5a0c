// A vector of floats in the memory that a table of operations works on: the host's, or a device's.
//
// Thread safety: as std::vector. Ownership: owns its floats; the table must outlive it. What is in
// it may be touched only through the table, unless Ops::on_host().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/kernels/ops.h>

namespace sotto {

/// x where the host may read it: itself, or a copy in `room`.
std::span<const float> on_host(std::span<const float> x, const Ops& ops, std::vector<float>& room);

class Vector {
 public:
  Vector() = default;
  /// Zeros. Throws where there is no room.
  Vector(std::size_t count, const Ops& ops);
  /// A copy of x, which lies where the table's vectors do.
  Vector(std::span<const float> x, const Ops& ops);
  ~Vector();
  Vector(Vector&& other) noexcept;
  Vector& operator=(Vector&& other) noexcept;

  // A range, which becomes a span wherever one is asked for.
  float* data() { return floats_; }                      ///< null when empty
  const float* data() const { return floats_; }          ///< null when empty
  std::size_t size() const { return count_; }            ///< elements
  bool empty() const { return count_ == 0; }             ///< no elements
  float* begin() { return floats_; }                     ///< the first
  float* end() { return floats_ + count_; }              ///< past the last
  const float* begin() const { return floats_; }         ///< the first
  const float* end() const { return floats_ + count_; }  ///< past the last
  /// The table. Requires one that was not made by default, or moved from.
  const Ops& ops() const { return *ops_; }

 private:
  const Ops* ops_ = nullptr;
  float* floats_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace sotto
