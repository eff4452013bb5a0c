#include "rice.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <sotto/base/check.h>

namespace sotto::internal {
namespace {

constexpr int kWordBits = 64;

}  // namespace

int rice_parameter(std::uint64_t count, std::uint64_t elements) {
  int best = 0;
  for (int p = 1; p <= kMostRiceParameter; ++p) {
    if (rice_bits_bound(count, elements, p) < rice_bits_bound(count, elements, best)) {
      best = p;
    }
  }
  return best;
}

inline void RiceWriter::put(std::uint64_t bits, int count) {
  pending_ |= bits << pending_bits_;
  pending_bits_ += count;
  if (pending_bits_ >= kWordBits) {
    check(out_.size() - at_ >= sizeof(pending_), "RiceWriter ran over its bound");
    std::memcpy(&out_[at_], &pending_, sizeof(pending_));
    at_ += sizeof(pending_);
    pending_bits_ -= kWordBits;
    // What did not fit; all of it fitted where none is left.
    pending_ = pending_bits_ == 0 ? 0 : bits >> (count - pending_bits_);
  }
}

void RiceWriter::write(std::uint32_t index) {
  check(index >= next_index_, "RiceWriter needs ascending indices");
  const std::uint64_t gap = index - next_index_;
  constexpr int kRun = 32;
  std::uint64_t ones = gap >> p_;
  for (; ones >= kRun; ones -= kRun) {
    put(0xFFFFFFFF, kRun);
  }
  // The zero that ends the ones is the next bit up; the p low bits follow.
  const std::uint64_t low = gap & ((std::uint64_t{1} << p_) - 1);
  put(((std::uint64_t{1} << ones) - 1) | (low << (ones + 1)), static_cast<int>(ones) + 1 + p_);
  next_index_ = std::uint64_t{index} + 1;
}

void RiceWriter::write(std::span<const std::uint32_t> indices) {
  RiceWriter own = *this;  // in registers: no byte that is written can be a part of it
  for (const std::uint32_t index : indices) {
    own.write(index);
  }
  *this = own;
}

std::size_t RiceWriter::finish() {
  const auto left = static_cast<std::size_t>(pending_bits_ + 7) / 8;
  check(out_.size() - at_ >= left, "RiceWriter ran over its bound");
  if (left > 0) {
    std::memcpy(&out_[at_], &pending_, left);
  }
  return at_ + left;
}

inline void RiceReader::refill() {
  if (window_bits_ <= kWordBits - 8 && bytes_.size() - at_ >= sizeof(window_)) {
    const int count = (kWordBits - window_bits_) / 8;  // bytes, 1 to 8
    std::uint64_t next = 0;
    std::memcpy(&next, &bytes_[at_], sizeof(next));
    next &= ~std::uint64_t{0} >> (kWordBits - 8 * count);
    window_ |= next << window_bits_;
    window_bits_ += 8 * count;
    at_ += static_cast<std::size_t>(count);
    return;
  }
  for (; window_bits_ <= kWordBits - 8 && at_ < bytes_.size(); window_bits_ += 8) {
    window_ |= std::to_integer<std::uint64_t>(bytes_[at_++]) << window_bits_;
  }
}

std::optional<std::uint64_t> RiceReader::read_unary() {
  std::uint64_t total = 0;
  for (;;) {
    refill();
    const int ones = std::countr_one(window_);
    total += static_cast<std::uint64_t>(ones);
    if (ones < window_bits_) {
      window_ >>= ones;
      window_ >>= 1;
      window_bits_ -= ones + 1;
      return total;
    }
    if (at_ == bytes_.size()) {
      return std::nullopt;
    }
    window_ = 0;
    window_bits_ = 0;
  }
}

std::optional<std::uint32_t> RiceReader::read_slowly() {
  const auto quotient = read_unary();
  if (!quotient || *quotient > elements_ >> p_) {
    return std::nullopt;
  }
  refill();
  if (window_bits_ < p_) {
    return std::nullopt;
  }
  const std::uint64_t low = window_ & ((std::uint64_t{1} << p_) - 1);
  window_ >>= p_;
  window_bits_ -= p_;
  const std::uint64_t index = next_index_ + ((*quotient << p_) | low);
  if (index >= elements_) {
    return std::nullopt;
  }
  next_index_ = index + 1;
  return static_cast<std::uint32_t>(index);
}

std::optional<std::uint32_t> RiceReader::read() {
  std::uint32_t index = 0;
  return read({&index, 1}) == 1 ? std::optional(index) : std::nullopt;
}

std::size_t RiceReader::read(std::span<std::uint32_t> out) {
  RiceReader own = *this;  // in registers: no index that is written can be a part of it
  std::size_t count = 0;
  for (; count < out.size(); ++count) {
    own.refill();
    const int ones = std::countr_one(own.window_);
    const int length = ones + 1 + own.p_;
    if (length > own.window_bits_) {
      *this = own;
      const auto index = read_slowly();
      own = *this;
      if (!index) {
        break;
      }
      out[count] = *index;
      continue;
    }
    const std::uint64_t rest = own.window_ >> ones >> 1;
    const std::uint64_t low = rest & ((std::uint64_t{1} << own.p_) - 1);
    const std::uint64_t index =
        own.next_index_ + ((static_cast<std::uint64_t>(ones) << own.p_) | low);
    if (index >= own.elements_) {
      break;
    }
    own.window_ = rest >> own.p_;
    own.window_bits_ -= length;
    own.next_index_ = index + 1;
    out[count] = static_cast<std::uint32_t>(index);
  }
  *this = own;
  return count;
}

}  // namespace sotto::internal
