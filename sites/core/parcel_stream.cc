#include <sotto/sites/core/parcel_stream.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <sotto/base/check.h>

namespace sotto::sites {
namespace {

bool sound_mass(double mass) { return std::isfinite(mass) && mass >= 0; }

Status impossible_stream() {
  return {Fault::malformed, "checkpoint has a stream of parcels that cannot be"};
}

}  // namespace

double OutStream::under_way() const {
  double mass = 0;
  for (const Item& item : items_) {
    mass += item.mass;
  }
  return mass;
}

Sequence OutStream::push(Item item, bool whole) {
  given_ += item.mass;
  items_.push_back(std::move(item));
  if (whole) {
    whole_ = next_;
    behind_ = false;
  }
  return next_++;
}

void OutStream::receipt(Sequence applied) {
  check(applied >= receipts_ && applied < next_, "a receipt is for parcels that were sent");
  receipts_ = applied;
  while (!items_.empty() && oldest() <= applied) {
    items_.pop_front();
  }
}

double OutStream::write_off() {
  const double mass = under_way();
  items_.clear();
  behind_ = true;
  return mass;
}

void OutStream::save(ByteBuffer& out) const {
  out.write(next_);
  out.write(receipts_);
  out.write(whole_);
  out.write(given_);
  out.write(static_cast<std::uint8_t>(behind_));
  out.write(static_cast<std::uint32_t>(items_.size()));
  for (const Item& item : items_) {
    out.write(item.round);
    out.write(item.mass);
    out.write(std::uint64_t{item.payload->size()});
    out.append(*item.payload);
  }
}

Status OutStream::load(ByteReader& in, std::size_t window, std::size_t max_payload) {
  next_ = in.read<Sequence>();
  receipts_ = in.read<Sequence>();
  whole_ = in.read<Sequence>();
  given_ = in.read<double>();
  const auto behind = in.read<std::uint8_t>();
  const auto count = in.read<std::uint32_t>();
  if (in.failed() || next_ == 0 || next_ > kMostCount + 1 || receipts_ >= next_ ||
      whole_ >= next_ || behind > 1 || count > window || count > next_ - 1 - receipts_ ||
      !sound_mass(given_)) {
    return impossible_stream();
  }
  behind_ = behind == 1;
  items_.clear();
  for (std::uint32_t k = 0; k < count; ++k) {
    Item item;
    item.round = in.read<Round>();
    item.mass = in.read<double>();
    const auto bytes = in.read<std::uint64_t>();
    if (in.failed() || bytes > max_payload || bytes > in.remaining() || item.round == 0 ||
        item.round > kMostCount || !sound_mass(item.mass)) {
      return impossible_stream();
    }
    const auto raw = in.take(bytes);
    item.payload = std::make_shared<const std::vector<std::byte>>(raw.begin(), raw.end());
    items_.push_back(std::move(item));
  }
  return {};
}

void InStream::announce(Sequence oldest, Sequence next) {
  resumes_ = oldest;
  announced_ = next;
  while (!pending_.empty() && pending_.front().sequence < oldest) {
    pending_.pop_front();
  }
}

bool InStream::awaits() const { return std::max(received_ + 1, resumes_) < announced_; }

InStream::Arrival InStream::arrive(const Parcel& parcel, const SharedBytes& message,
                                   std::size_t window) {
  if (parcel.sequence <= received_) {
    return Arrival::repeated;
  }
  if (parcel.sequence != std::max(received_ + 1, resumes_)) {
    return Arrival::gap;
  }
  if (parcel.round <= last_round_) {
    return Arrival::old_round;
  }
  if (pending_.size() >= window) {
    return Arrival::too_many;
  }
  last_round_ = parcel.round;
  received_ = parcel.sequence;
  pending_.push_back({.sequence = parcel.sequence,
                      .round = parcel.round,
                      .payload = message.part(parcel.payload)});
  return Arrival::kept;
}

void InStream::apply_first(double mass) {
  check(!pending_.empty(), "a parcel is applied that has come");
  applied_ = pending_.front().sequence;
  taken_ += mass;
  pending_.pop_front();
}

void InStream::drop_pending() {
  pending_.clear();
  received_ = applied_;
  last_round_ = 0;
}

void InStream::save(ByteBuffer& out) const {
  out.write(applied_);
  out.write(taken_);
}

Status InStream::load(ByteReader& in) {
  applied_ = in.read<Sequence>();
  taken_ = in.read<double>();
  if (in.failed() || applied_ > kMostCount || !sound_mass(taken_)) {
    return impossible_stream();
  }
  durable_ = received_ = applied_;
  return {};
}

}  // namespace sotto::sites
