// A link that carries rows of activations from one member of a group to another, by differences to
// what both ends hold under the rows' keys, and gradients at these rows back.
//
// Source: AQ-SGD (Wang et al. 2022, arXiv:2206.01299). A row a has a key ξ that both ends know, and
// that comes again: the number of an example, or of an example and a position in it.
//   first visit:  the sender sends C₁(a);      both ends: m[ξ] ← C₁(a)
//   later:        the sender sends C(a − m[ξ]); both ends: m[ξ] ← m[ξ] + C(a − m[ξ])
// The receiver goes on with m[ξ]. Gradients at m[ξ] come back unbiased, without memory, and are
// taken for gradients at a. As a row changes less and less from visit to visit, few bits are
// enough;
// **rows that never come again gain nothing**, and take AllToAll or Halo.
// With the compressor `none` rows themselves are sent, to the bit, and nothing is remembered.
//
// A round has `batches` batches, and each has two exchanges of its own, each the collective of a
// stage (program.h):
//
// | batch b at the sender    | is carried by  | batch b at the receiver              |
// | ------------------------ | -------------- | ------------------------------------ |
// | send(b, keys, a)         | carrying(b)    | receive(b, keys), then rows(b)       |
// | receive_gradient(b),     | returning(b)   | send_gradient(b, dm)                 |
// | then gradient(b)         |                |                                      |
//
// Batches are carried in order; where nothing is learnt, the gradients are left out. Other members
// of the group have the link in their lists too, and begin nothing.
// Both ends digest the keys and all that was sent. An end that has other keys, or another memory
// than its peer (a checkpoint of another round, say), refuses the first frame, and says so.
//
// Payload there: the sender's digest of all before it and of the batch's keys (u64), then the rows,
// each encoded by itself (row_codec.h), by C₁ where the memory has none under its key. Payload
// back: the rows. Elements in the header: rows × width. Rows are activations: **whoever gets them
// learns of the data**; privacy/ does not cover them.
//
// Volume: a frame there and one back a batch, 64 + 8 + rows |C(width)| and 64 + rows |C_b(width)|
// bytes. In E passes a row has (b₁ + (E − 1) b) / E bits an element in the mean.
// Memory: 4 keys × width bytes at each end, 2 with KeyedForm::fp16, where both ends round a row to
// it once it is added up and go on with that; and rows × width floats a batch.
//
// One thread at a time; a key's first visit allocates its entry, nothing else does after the
// constructor. The member's node must outlive the link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/groups/collective.h>
#include <sotto/groups/keyed_memory.h>
#include <sotto/groups/row_codec.h>

namespace sotto {

/// A link, the same at all members.
struct KeyedLinkOptions {
  int from = 0;           ///< position of the member that sends rows
  int to = 1;             ///< position of the member that gets them
  std::size_t width = 1;  ///< elements of a row
  std::size_t rows = 1;   ///< most rows of a batch
  int batches = 1;        ///< batches of a round
  /// Most keys that are remembered: all rows of a pass over the data. A row beyond is a fault.
  std::size_t keys = 1;
  std::string compressor = "quant:4";  ///< compressor of differences, a contraction; or none
  std::string first = "quant:8";       ///< compressor of first visits, a contraction; or none
  std::string gradient_compressor = "quant:8";  ///< compressor of Carried::activation_gradient
  KeyedForm memory = KeyedForm::fp32;           ///< form of remembered rows; fp16: half the bytes
  /// The most bytes of the memory at one end: 1 GiB.
  std::size_t memory_limit = std::size_t{1} << 30U;
};

/// What a link has carried.
struct KeyedLinkCounts {
  std::uint64_t first = 0;  ///< rows that had nothing under their keys
  std::uint64_t again = 0;  ///< rows that were sent as differences
};

class KeyedLink {
 public:
  /// Throws Error (fields "from" and "to") for positions that are none, or equal, (fields "width",
  /// "rows", "batches" and "keys") for 0 and for more than frames count, (field "keys") for a
  /// memory above its limit, and as RowCodec: differences and first visits are
  /// Carried::activation with ErrorMemory::keyed.
  KeyedLink(const GroupMember& member, const KeyedLinkOptions& options);
  ~KeyedLink();
  KeyedLink(const KeyedLink&) = delete;
  KeyedLink& operator=(const KeyedLink&) = delete;

  /// What the link is.
  const KeyedLinkOptions& options() const;
  /// This member is the one that sends rows.
  bool sends() const;
  /// This member is the one that gets them.
  bool receives() const;

  /// Begins to send a batch: row i of `rows` has keys[i]. The rows must stay until they are
  /// carried. Fault::unexpected for a key that stands twice, or that finds no room in the memory.
  Status send(int batch, std::span<const std::uint64_t> keys, std::span<const float> rows);
  /// Begins to receive a batch with these keys. Faults as send.
  Status receive(int batch, std::span<const std::uint64_t> keys);
  /// Carries a batch of rows. Collectives of a link are carried in the order of batches.
  Collective& carrying(int batch);
  /// The rows that came, as both ends hold them; until the batch's next `receive`.
  std::span<const float> rows(int batch) const;

  /// Begins to send the gradients at rows(batch), as many. They must stay until they are carried.
  void send_gradient(int batch, std::span<const float> gradient);
  /// Begins to receive the gradients at the rows that were sent.
  void receive_gradient(int batch);
  /// Carries the gradients of a batch.
  Collective& returning(int batch);
  /// The gradients that came, one for each row; until the batch's next `receive_gradient`.
  std::span<const float> gradient(int batch) const;

  /// The frame there of a batch with so many rows that come for the first time, and again.
  EdgeVolume volume_there(std::size_t first, std::size_t again) const;
  /// The frame back of a batch with so many rows.
  EdgeVolume volume_back(std::size_t rows) const;
  /// What was sent, or received, since the link was made.
  KeyedLinkCounts counts() const;

  /// The row that both ends hold under a key; empty where there is none, and at other members.
  std::span<const float> remembered(std::uint64_t key) const;
  /// The digest of keys and rows so far, equal at both ends between rounds.
  std::uint64_t digest() const;
  /// Forgets what is held under these keys, to make room. Both ends do it between the same two
  /// rounds, with the same keys; else they refuse each other.
  void forget(std::span<const std::uint64_t> keys);

  /// Appends the memory. A program's checkpoint has it already, by way of carrying(0).
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote, of a link with these options. Faults as KeyedMemory::load.
  Status load(ByteReader& in);

 private:
  struct Shared;
  class Batch;
  class Rows;
  class Gradients;

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Rows>> there_;
  std::vector<std::unique_ptr<Gradients>> back_;
};

}  // namespace sotto
