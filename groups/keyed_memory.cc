#include <sotto/groups/keyed_memory.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/xxh3.h>
#include <sotto/kernels/ops.h>

namespace sotto {

KeyedMemory::KeyedMemory(std::size_t width, std::size_t keys, KeyedForm form, bool use)
    : width_(width), capacity_(keys), form_(form), row_(width) {
  rounded_.resize(row_bytes());
  if (use) {
    order_.reserve(keys);
    rows_.reserve(keys * row_bytes());
  }
}

std::size_t KeyedMemory::encode(std::span<const float> rows, std::span<std::byte> held) const {
  if (form_ == KeyedForm::fp16) {
    return host_ops().to_fp16(rows, held);
  }
  std::ranges::copy(std::as_bytes(rows), held.begin());
  return 0;
}

void KeyedMemory::decode(std::span<const std::byte> held, std::span<float> rows) const {
  if (form_ == KeyedForm::fp16) {
    std::ranges::fill(rows, 0.0F);
    host_ops().fp16_axpy(1, held, rows);
  } else {
    std::ranges::copy(held, std::as_writable_bytes(rows).begin());
  }
}

std::span<const float> KeyedMemory::row(std::uint64_t key) const {
  const auto found = slots_.find(key);
  if (found == slots_.end()) {
    return {};
  }
  decode(std::span(rows_).subspan(found->second * row_bytes(), row_bytes()), row_);
  return row_;
}

std::size_t KeyedMemory::round(std::span<float> row) const {
  if (form_ == KeyedForm::fp32) {
    return 0;
  }
  const std::size_t saturated = encode(row, rounded_);
  decode(rounded_, row);
  return saturated;
}

void KeyedMemory::put(std::uint64_t key, std::span<const float> row) {
  check(row.size() == width_, "rows have the memory's width");
  const auto [entry, is_new] = slots_.try_emplace(key, size());
  if (is_new) {
    check(size() < capacity_, "a row finds room");
    order_.push_back(key);
    rows_.resize(rows_.size() + row_bytes());
  }
  (void)encode(row, at(entry->second));  // it was rounded, or is of a finished batch
}

void KeyedMemory::forget(std::span<const std::uint64_t> keys) {
  for (const std::uint64_t key : keys) {
    const auto found = slots_.find(key);
    if (found == slots_.end()) {
      continue;
    }
    // The last row takes the place.
    const std::size_t slot = found->second;
    std::ranges::copy(at(size() - 1), at(slot).begin());
    order_[slot] = order_.back();
    slots_[order_[slot]] = slot;
    slots_.erase(key);
    order_.pop_back();
    rows_.resize(rows_.size() - row_bytes());
  }
  digest_ = digest_after(std::as_bytes(keys));
}

std::uint64_t KeyedMemory::digest_after(std::span<const std::byte> bytes) const {
  return xxh3(bytes, digest_);
}

void KeyedMemory::clear() {
  slots_.clear();
  order_.clear();
  rows_.clear();
  digest_ = 0;
}

void KeyedMemory::save(ByteBuffer& out) const {
  out.write(digest_);
  out.write(static_cast<std::uint64_t>(order_.size()));
  out.write_span(std::span(order_));
  out.write(static_cast<std::uint64_t>(order_.size() * width_));
  for (const std::uint64_t key :
       order_) {  // one after another: all in fp32 are as much memory again
    out.write_span(row(key));
  }
}

Status KeyedMemory::load_rows(ByteReader& in) {
  const std::size_t due = order_.size() * width_;
  if (const auto elements = in.read<std::uint64_t>(); in.failed() || elements != due) {
    return {Fault::malformed,
            fmt::format("checkpoint has {} elements of remembered rows where {} are due", elements,
                        due)};
  }
  rows_.resize(order_.size() * row_bytes());
  for (std::size_t slot = 0; slot < order_.size(); ++slot) {
    if (!in.read_into(std::span(row_))) {
      return {Fault::malformed, "checkpoint ends within remembered rows"};
    }
    if (host_ops().count_non_finite(row_).count > 0) {
      return {Fault::non_finite,
              fmt::format("checkpoint has remembered row {}, which is not finite", slot)};
    }
    (void)encode(row_, at(slot));
  }
  return {};
}

Status KeyedMemory::load(ByteReader& in) {
  clear();
  const auto digest = in.read<std::uint64_t>();
  const auto count = in.read<std::uint64_t>();
  if (in.failed() || count > capacity_) {
    return {
        Fault::malformed,
        fmt::format("a memory of {} rows under keys where {} have room; go on with as many keys",
                    count, capacity_)};
  }
  order_.resize(count);
  in.read_into(std::span(order_));
  Status status = load_rows(in);
  for (std::size_t slot = 0; status.ok() && slot < count; ++slot) {
    if (!slots_.emplace(order_[slot], slot).second) {
      status = {Fault::malformed,
                fmt::format("the memory has two rows under the key {}", order_[slot])};
    }
  }
  if (!status.ok()) {
    clear();
    return status;
  }
  digest_ = digest;
  return {};
}

}  // namespace sotto
