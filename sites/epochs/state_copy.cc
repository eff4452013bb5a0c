#include <sotto/sites/epochs/state_copy.h>

#include <algorithm>
#include <utility>

namespace sotto::sites {

void StateCopy::begin(LiveState state, std::size_t piece_bytes, EpochTime now) {
  drop();
  step_ = state.step;
  live_ = std::move(state);
  piece_bytes_ = std::max<std::size_t>(piece_bytes, live_.bytes / kMostPieces + 1);
  pieces_.resize((live_.bytes + piece_bytes_ - 1) / piece_bytes_);
  made_ = asked_ = now;
}

void StateCopy::copy_piece(std::size_t index) {
  const std::size_t first = index * piece_bytes_;
  const std::size_t count = std::min(piece_bytes_, live_.bytes - first);
  std::vector<std::byte> part = pool_.take(count);
  live_.part(first, count, part);
  copied_ += part.size();
  pieces_[index] = pool_.share(std::move(part));
}

void StateCopy::copy(std::size_t most) {
  if (!copies()) {
    return;
  }
  const std::size_t before = copied_;
  for (; next_ < pieces_.size(); ++next_) {
    if (pieces_[next_]) {
      continue;
    }
    if (copied_ > before && copied_ - before + piece_bytes_ > most) {
      return;
    }
    copy_piece(next_);
  }
  live_.part = nullptr;
}

std::optional<PieceMessage> StateCopy::piece(const FetchMessage& fetch, EpochTime now) {
  if (step_ != fetch.step || fetch.index >= pieces_.size()) {
    return std::nullopt;
  }
  asked_ = now;
  if (!pieces_[fetch.index]) {
    copy_piece(fetch.index);
  }
  return PieceMessage{.step = fetch.step,
                      .root = live_.root,
                      .count = static_cast<std::uint32_t>(pieces_.size()),
                      .index = fetch.index,
                      .bytes = *pieces_[fetch.index]};
}

void StateCopy::expire(EpochTime now) {
  if (step_ && now - asked_ > kHeld) {
    drop();
  }
}

void StateCopy::drop() {
  step_.reset();
  live_ = {};
  pieces_.clear();
  next_ = 0;
  copied_ = 0;
}

void WholeCopy::begin(LiveState state, std::vector<std::byte> room) {
  live_ = std::move(state);
  bytes_ = std::move(room);
  bytes_.clear();
  bytes_.reserve(live_.bytes);
  begun_ = true;
}

void WholeCopy::copy(std::size_t most) {
  if (!copies()) {
    return;
  }
  live_.part(bytes_.size(), std::min(most, live_.bytes - bytes_.size()), bytes_);
  if (bytes_.size() >= live_.bytes) {
    live_.part = nullptr;
  }
}

void WholeCopy::drop() {
  live_ = {};
  bytes_.clear();
  begun_ = false;
}

std::optional<WholeCopy::Copied> WholeCopy::take() {
  if (!begun_ || copies()) {
    return std::nullopt;
  }
  begun_ = false;
  return Copied{.step = live_.step, .bytes = std::move(bytes_)};
}

}  // namespace sotto::sites
