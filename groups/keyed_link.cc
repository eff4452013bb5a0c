#include <sotto/groups/keyed_link.h>

#include <sotto/base/check.h>

#include "internal/keyed_batch.h"
#include "internal/keyed_shared.h"

namespace sotto {

KeyedLink::KeyedLink(const GroupMember& member, const KeyedLinkOptions& options)
    : shared_(std::make_unique<Shared>(member, options)) {
  for (int batch = 0; batch < options.batches; ++batch) {
    there_.push_back(std::make_unique<Rows>(*shared_, static_cast<std::size_t>(batch)));
    back_.push_back(std::make_unique<Gradients>(*shared_, static_cast<std::size_t>(batch)));
  }
}

KeyedLink::~KeyedLink() = default;

const KeyedLinkOptions& KeyedLink::options() const { return shared_->options; }
bool KeyedLink::sends() const { return shared_->sends(); }
bool KeyedLink::receives() const { return shared_->receives(); }

Status KeyedLink::send(int batch, std::span<const std::uint64_t> keys,
                       std::span<const float> rows) {
  const auto at = static_cast<std::size_t>(batch);
  check(sends(), "the member at the link's beginning sends rows");
  check(rows.size() == keys.size() * shared_->options.width, "a key has a row");
  Status status = shared_->take_keys(at, keys);
  if (status.ok()) {
    there_.at(at)->begin(rows);
  }
  return status;
}

Status KeyedLink::receive(int batch, std::span<const std::uint64_t> keys) {
  const auto at = static_cast<std::size_t>(batch);
  check(receives(), "the member at the link's end gets rows");
  Status status = shared_->take_keys(at, keys);
  if (status.ok()) {
    there_.at(at)->begin({});
  }
  return status;
}

Collective& KeyedLink::carrying(int batch) { return *there_.at(static_cast<std::size_t>(batch)); }

std::span<const float> KeyedLink::rows(int batch) const {
  check(receives(), "the member at the link's end has rows that came");
  return shared_->came_of(static_cast<std::size_t>(batch));
}

void KeyedLink::send_gradient(int batch, std::span<const float> gradient) {
  check(gradient.size() == rows(batch).size(), "a row has a gradient");
  back_.at(static_cast<std::size_t>(batch))->begin(gradient);
}

void KeyedLink::receive_gradient(int batch) {
  check(sends(), "the member at the link's beginning gets gradients");
  back_.at(static_cast<std::size_t>(batch))->begin({});
}

Collective& KeyedLink::returning(int batch) { return *back_.at(static_cast<std::size_t>(batch)); }

std::span<const float> KeyedLink::gradient(int batch) const {
  check(sends(), "the member at the link's beginning has gradients that came");
  return shared_->came_of(static_cast<std::size_t>(batch));
}

EdgeVolume KeyedLink::volume_there(std::size_t first, std::size_t again) const {
  return {.frames = 1,
          .elements = (first + again) * shared_->options.width,
          .bytes = kFrameHeaderBytes + sizeof(std::uint64_t) +
                   (shared_->exact
                        ? (first + again) * shared_->later.row_bytes()
                        : first * shared_->first.row_bytes() + again * shared_->later.row_bytes())};
}

EdgeVolume KeyedLink::volume_back(std::size_t rows) const {
  return {.frames = 1,
          .elements = rows * shared_->options.width,
          .bytes = kFrameHeaderBytes + rows * shared_->back.row_bytes()};
}

KeyedLinkCounts KeyedLink::counts() const { return shared_->counts; }

std::span<const float> KeyedLink::remembered(std::uint64_t key) const {
  return shared_->memory.row(key);
}

std::uint64_t KeyedLink::digest() const { return shared_->memory.digest(); }

void KeyedLink::forget(std::span<const std::uint64_t> keys) {
  if (sends() || receives()) {
    shared_->memory.forget(keys);
  }
}

void KeyedLink::save(ByteBuffer& out) const { shared_->memory.save(out); }

Status KeyedLink::load(ByteReader& in) { return shared_->memory.load(in); }

}  // namespace sotto
