// What both ends of a link hold of rows that recur: a row under each key, and a digest of how it
// came about.
//
// Source: AQ-SGD (Wang et al. 2022, arXiv:2206.01299), which keeps the activations of each example
// at both ends and sends their changes. (Its idea is that of DCD-PSGD, for rows.)
//
// Two memories that took the same batches are equal to the bit, and so are their digests. Nothing
// is thrown out silently: a row that finds no room is a fault, and `forget` is the caller's, at
// both ends alike. (Throwing out the oldest row would not help: with fewer rows than a pass over
// the data has, each would be gone just before its key comes again.)
//
// In half precision a row is what fp16 has of it, rounded to the nearest when it is put: half the
// memory, and errors of rows that do not fall below fp16's.
//
// One thread at a time. Room for all rows is reserved in the constructor; a key's first visit
// allocates its entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>

namespace sotto {

/// How rows lie in a memory.
enum class KeyedForm { fp32, fp16 };

class KeyedMemory {
 public:
  /// A memory for rows of `width` elements under at most `keys` keys, with room reserved where this
  /// node is to `use` it.
  KeyedMemory(std::size_t width, std::size_t keys, KeyedForm form = KeyedForm::fp32,
              bool use = true);

  /// Bytes of an element.
  static constexpr std::size_t element_bytes(KeyedForm form) {
    return form == KeyedForm::fp16 ? 2 : sizeof(float);
  }

  /// Number of keys that have a row.
  std::size_t size() const { return order_.size(); }
  /// The most keys.
  std::size_t capacity() const { return capacity_; }
  /// Whether a key has a row.
  bool has(std::uint64_t key) const { return slots_.contains(key); }
  /// The row under a key; empty where there is none. Until the next row, put or forget.
  std::span<const float> row(std::uint64_t key) const;
  /// Makes of a row what the memory will have of it; the number of elements that were cut to the
  /// largest half, 65,504.
  std::size_t round(std::span<float> row) const;
  /// The row under a key is `row`, rounded, from now on. Requires room for a new key.
  void put(std::uint64_t key, std::span<const float> row);
  /// These keys have no row any more, and are new when they come again. Keys without one are none
  /// of its business. Part of the digest.
  void forget(std::span<const std::uint64_t> keys);

  /// The digest of everything that has happened.
  std::uint64_t digest() const { return digest_; }
  /// What the digest is once `bytes` have happened, too.
  std::uint64_t digest_after(std::span<const std::byte> bytes) const;
  /// Sets the digest.
  void set_digest(std::uint64_t digest) { digest_ = digest; }

  /// Appends keys, rows and digest.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote of a memory for rows as wide. Fault::malformed for more rows than
  /// have room or what else is none, Fault::non_finite for such a row; it is then empty.
  Status load(ByteReader& in);

 private:
  std::size_t row_bytes() const { return width_ * element_bytes(form_); }
  std::span<std::byte> at(std::size_t slot) {
    return std::span(rows_).subspan(slot * row_bytes(), row_bytes());
  }
  /// Between rows and what is held of them; the number of elements that were cut.
  std::size_t encode(std::span<const float> rows, std::span<std::byte> held) const;
  void decode(std::span<const std::byte> held, std::span<float> rows) const;
  /// Reads the rows of the keys that were read.
  Status load_rows(ByteReader& in);
  void clear();

  std::size_t width_;
  std::size_t capacity_;
  KeyedForm form_;
  std::map<std::uint64_t, std::size_t> slots_;  ///< the row of each key
  std::vector<std::uint64_t> order_;            // keys by slot
  std::vector<std::byte> rows_;                 // rows by slot, in the memory's form
  mutable std::vector<float> row_;              // the row that was asked for last
  mutable std::vector<std::byte> rounded_;      // room for a row in the memory's form
  std::uint64_t digest_ = 0;
};

}  // namespace sotto
