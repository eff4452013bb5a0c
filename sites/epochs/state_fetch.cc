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
  made_ = asked_ = now;
}

std::optional<PieceMessage> StateCopy::piece(const FetchMessage& fetch, EpochTime now) {
  const std::size_t first = fetch.index * piece_bytes_;
  if (step_ != fetch.step || first >= bytes_.size()) {
    return std::nullopt;
  }
  asked_ = now;
  const std::size_t count = (bytes_.size() + piece_bytes_ - 1) / piece_bytes_;
  return PieceMessage{.step = fetch.step,
                      .root = root_,
                      .count = static_cast<std::uint32_t>(count),
                      .index = fetch.index,
                      .bytes = bytes_.part(std::span<const std::byte>(bytes_).subspan(
                          first, std::min(piece_bytes_, bytes_.size() - first)))};
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

void StateFetch::want(Round step, EpochTime now) {
  wanted_ = step;
  chosen_ = now;
  forget_pieces();
}

void StateFetch::choose(EpochTime now, EpochTime patience) {
  Round step = 0;
  std::optional<Round> offered;
  for (const auto& [node, donor] : donors_) {
    step = std::max(step, donor.step);
    offered = std::max(offered, donor.copy);
  }
  const std::optional<Round> before =
      std::exchange(seen_, donors_.empty() ? std::nullopt : std::optional(step));
  if (offered && offered != wanted_ && !done_ && pieces_.empty()) {
    want(*offered, now);
    return;
  }
  if (!before || !seen_ || done_ || (wanted_ && now - chosen_ < patience)) {
    return;
  }
  // All donors can copy a step that none has reached when it hears of it; but where the run pauses
  // none will come.
  const Round pace = step - std::min(step, *before);
  ahead_ = wanted_ ? !ahead_ : pace > 0;
  want(step + (ahead_ ? 1 + 2 * pace : 0), now);
}

bool StateFetch::take(const PieceMessage& piece, EpochTime now) {
  if (piece.step != wanted_ || done_ ||
      (count_ > 0 && (piece.root != root_ || piece.count != count_))) {
    return false;
  }
  if (piece.bytes.size() > most_bytes_ - bytes_) {
    restart();  // no state is that long
    return false;
  }
  count_ = piece.count;
  root_ = piece.root;
  if (pieces_.try_emplace(piece.index, piece.bytes.begin(), piece.bytes.end()).second) {
    bytes_ += piece.bytes.size();
    chosen_ = now;
  }
  return pieces_.size() == count_;
}

std::vector<std::uint32_t> StateFetch::ask(std::size_t most) {
  std::vector<std::uint32_t> indices;
  const auto got =
      static_cast<std::size_t>(std::distance(pieces_.begin(), pieces_.lower_bound(asked_)));
  for (std::size_t under_way = asked_ - got;
       wanted_ && !done_ && asked_ < std::max(count_, 1U) && under_way < most; ++asked_) {
    if (!pieces_.contains(asked_)) {
      indices.push_back(asked_);
      ++under_way;
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
