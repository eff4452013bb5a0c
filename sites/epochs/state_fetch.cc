#include <sotto/sites/epochs/state_fetch.h>

#include <algorithm>
#include <span>
#include <utility>

#include <sotto/base/xxh3.h>

namespace sotto::sites {

void StateCopy::take(Round step, std::vector<std::byte> bytes, std::size_t piece_bytes,
                     EpochTime now) {
  step_ = step;
  bytes_ = std::move(bytes);
  root_ = xxh3_128(bytes_);
  piece_bytes_ = std::max<std::size_t>(piece_bytes, bytes_.size() / kMostPieces + 1);
  asked_ = now;
}

std::optional<PieceMessage> StateCopy::piece(const FetchMessage& fetch, EpochTime now) {
  const std::size_t first = fetch.index * piece_bytes_;
  if (step_ != fetch.step || first >= bytes_.size()) {
    return std::nullopt;
  }
  asked_ = now;
  const std::size_t count = (bytes_.size() + piece_bytes_ - 1) / piece_bytes_;
  return PieceMessage{
      .step = fetch.step,
      .root = root_,
      .count = static_cast<std::uint32_t>(count),
      .index = fetch.index,
      .bytes = std::span<const std::byte>(bytes_).subspan(
          first, std::min(piece_bytes_, bytes_.size() - first))};
}

void StateCopy::expire(EpochTime now) {
  if (step_ && now - asked_ > kHeld) {
    drop();
  }
}

void StateCopy::drop() {
  step_.reset();
  bytes_ = {};
}

void StateFetch::choose(EpochTime now, EpochTime patience) {
  if (donors_.empty() || done_ || (wanted_ && now - chosen_ < patience)) {
    return;
  }
  Round step = 0;
  for (const auto& [node, donor] : donors_) {
    step = std::max(step, donor.step);
  }
  // All donors can copy a step that none has reached; but where the run pauses none will come.
  ahead_ = !ahead_;
  wanted_ = step + (ahead_ ? 1 : 0);
  chosen_ = now;
  forget_pieces();
}

bool StateFetch::take(const PieceMessage& piece, EpochTime now) {
  if (piece.step != wanted_ || done_ || (count_ > 0 && (piece.root != root_ || piece.count != count_))) {
    return false;
  }
  count_ = piece.count;
  root_ = piece.root;
  chosen_ = now;
  pieces_.try_emplace(piece.index, piece.bytes.begin(), piece.bytes.end());
  return pieces_.size() == count_;
}

std::vector<std::uint32_t> StateFetch::missing(std::size_t most) const {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t k = 0; k < std::max(count_, 1U) && indices.size() < most; ++k) {
    if (!pieces_.contains(k)) {
      indices.push_back(k);
    }
  }
  return indices;
}

std::optional<std::vector<std::byte>> StateFetch::finish() {
  std::vector<std::byte> whole;
  for (const auto& [index, bytes] : pieces_) {
    whole.insert(whole.end(), bytes.begin(), bytes.end());
  }
  if (xxh3_128(whole) != root_) {
    restart();
    return std::nullopt;
  }
  forget_pieces();
  done_ = true;
  return whole;
}

}  // namespace sotto::sites
