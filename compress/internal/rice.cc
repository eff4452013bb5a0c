#include "rice.h"

#include <algorithm>
#include <bit>

#include <sotto/base/check.h>

namespace sotto::internal {

int rice_parameter(std::uint64_t count, std::uint64_t elements) {
  int best = 0;
  for (int p = 1; p <= kMaxRiceParameter; ++p) {
    if (rice_bits_bound(count, elements, p) < rice_bits_bound(count, elements, best)) {
      best = p;
    }
  }
  return best;
}

void RiceWriter::write(std::uint32_t index) {
  check(index >= next_index_, "RiceWriter needs ascending indices");
  const std::uint64_t gap = index - next_index_;
  constexpr int kRun = 32;
  std::uint64_t ones = gap >> p_;
  for (; ones >= kRun; ones -= kRun) {
    put(0xFFFFFFFF, kRun);
  }
  // The zero that ends the ones is the next bit up.
  put((std::uint64_t{1} << ones) - 1, static_cast<int>(ones) + 1);
  put(gap & ((std::uint64_t{1} << p_) - 1), p_);
  next_index_ = std::uint64_t{index} + 1;
}

void RiceWriter::put(std::uint64_t bits, int count) {
  pending_ |= bits << pending_bits_;
  pending_bits_ += count;
  for (; pending_bits_ >= 8; pending_bits_ -= 8) {
    check(at_ < out_.size(), "RiceWriter ran over its bound");
    out_[at_++] = static_cast<std::byte>(pending_ & 0xFF);
    pending_ >>= 8;
  }
}

std::size_t RiceWriter::finish() {
  put(0, (8 - pending_bits_) % 8);
  return at_;
}

void RiceReader::refill() {
  for (; window_bits_ <= 56 && at_ < bytes_.size(); window_bits_ += 8) {
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

std::optional<std::uint32_t> RiceReader::read() {
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

}  // namespace sotto::internal
