#include <sotto/sites/faults/lies.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <variant>

#include <sotto/sites/core/message.h>

namespace sotto {

using sites::Hello;
using sites::MixingKind;
using sites::Model;
using sites::Parcel;
using sites::Receipt;

namespace {

using Bytes = std::vector<std::byte>;

/// Share and mass, or version and number of changes, before what a compressor made.
constexpr std::size_t kPayloadHeader = 2 * sizeof(double);
/// The longest message of random bytes.
constexpr std::uint64_t kMostGarbage = 512;

/// Absurd values in place of the model's, which are finite and which no model survives.
void spoil(const PlannedLie& lie, std::span<float> values, RandomStream& random) {
  const auto value = static_cast<float>(lie.strength_of());
  bool any = false;
  for (float& one : values) {
    const bool hit = lie.part >= 1 || random.uniform() < lie.part;
    one = hit ? value : one;
    any = any || hit;
  }
  if (!any) {
    values[random.below(values.size())] = value;
  }
}

Bytes absurd(const PlannedLie& lie, std::span<const std::byte> payload, const MessageForm& form,
             RandomStream& random) {
  Bytes made(payload.begin(), payload.end());
  if (form.exchange == MixingKind::secure_mean) {
    made.back() ^= std::byte{0x40};  // what is masked adds up no more
    return made;
  }
  std::vector<float> values(form.dimension);
  const bool whole = payload.size() == kPayloadHeader + form.dimension * sizeof(float);
  if (whole) {
    std::memcpy(values.data(), payload.data() + kPayloadHeader, form.dimension * sizeof(float));
  }
  spoil(lie, values, random);
  if (whole) {
    std::memcpy(made.data() + kPayloadHeader, values.data(), form.dimension * sizeof(float));
  } else {
    made.resize(kPayloadHeader + form.compressor->max_bytes(form.dimension));
    made.resize(kPayloadHeader +
                form.compressor->encode(values, {}, std::span(made).subspan(kPayloadHeader)));
  }
  return made;
}

/// The parcel with another mass; its model stays, as far as a share of 1 at most allows.
Bytes with_mass(std::span<const std::byte> payload, double mass) {
  constexpr double kLeastShare = 0x1p-64;
  Bytes made(payload.begin(), payload.end());
  double share = 0;
  double held = 0;
  std::memcpy(&share, made.data(), sizeof share);
  std::memcpy(&held, made.data() + sizeof share, sizeof held);
  share = std::clamp(share * mass / held, kLeastShare, 1.0);
  std::memcpy(made.data(), &share, sizeof share);
  std::memcpy(made.data() + sizeof share, &mass, sizeof mass);
  return made;
}

std::vector<Bytes> lie_in(const PlannedLie& lie, std::span<const std::byte> message, Parcel parcel,
                          const MessageForm& form, RandomStream& random) {
  Bytes payload;
  switch (lie.kind) {
    case LieKind::takes:
    case LieKind::swallows:
      return {};
    case LieKind::mints:
      payload = with_mass(parcel.payload, lie.strength_of());
      break;
    case LieKind::stints:
      payload = with_mass(parcel.payload,
                          std::max(mass_in(message, form.dimension) * lie.strength_of(), 0x1p-64));
      break;
    case LieKind::kills:
      payload = absurd(lie, parcel.payload, form, random);
      break;
    default:
      return {Bytes(message.begin(), message.end())};
  }
  parcel.payload = payload;
  return {encode(parcel)};
}

std::vector<Bytes> lie_in(const PlannedLie& lie, Hello hello) {
  if (lie.kind == LieKind::takes || lie.kind == LieKind::swallows) {
    hello.next = hello.oldest;  // nothing is to come
  }
  if (lie.kind == LieKind::ahead && hello.has_model) {
    hello.round += static_cast<Round>(lie.strength_of());
  }
  return {encode(hello)};
}

std::vector<Bytes> lie_in(const PlannedLie& lie, Receipt receipt) {
  if (lie.kind == LieKind::swallows || lie.kind == LieKind::denies) {
    return {};
  }
  receipt.round += lie.kind == LieKind::ahead ? static_cast<Round>(lie.strength_of()) : 0;
  const auto times =
      lie.kind == LieKind::floods ? static_cast<std::size_t>(lie.strength_of()) : std::size_t{1};
  return std::vector<Bytes>(times, encode(receipt));
}

std::vector<Bytes> lie_in(const PlannedLie& lie, Model model, RandomStream& random) {
  model.round += lie.kind == LieKind::ahead ? static_cast<Round>(lie.strength_of()) : 0;
  if (lie.kind == LieKind::kills) {
    spoil(lie, model.values, random);
  }
  return {encode(model)};
}

Bytes garbage(std::size_t first, RandomStream& random) {
  Bytes bytes(1 + random.below(kMostGarbage));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.below(256));
  }
  if (random.below(2) == 0) {
    bytes.front() = static_cast<std::byte>(first);  // of a kind that there is
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> lie_about(const PlannedLie& lie, std::span<const std::byte> message,
                             const MessageForm& form, RandomStream& random) {
  const auto parsed = sites::parse(message, form.dimension);
  const Bytes honest(message.begin(), message.end());
  if (!parsed.ok() || (lie.often < 1 && !(random.uniform() < lie.often))) {
    return {honest};
  }
  if (lie.kind == LieKind::garbles) {
    return {garbage(1 + random.below(8), random)};
  }
  if (const auto* parcel = std::get_if<Parcel>(&*parsed)) {
    return lie_in(lie, message, *parcel, form, random);
  }
  if (const auto* hello = std::get_if<Hello>(&*parsed)) {
    return lie_in(lie, *hello);
  }
  if (const auto* receipt = std::get_if<Receipt>(&*parsed)) {
    return lie_in(lie, *receipt);
  }
  if (const auto* model = std::get_if<Model>(&*parsed)) {
    return lie_in(lie, *model, random);
  }
  return {honest};
}

double mass_in(std::span<const std::byte> message, std::size_t dimension) {
  const auto parsed = sites::parse(message, dimension);
  const auto* parcel = parsed.ok() ? std::get_if<Parcel>(&*parsed) : nullptr;
  double mass = 0;
  if (parcel != nullptr && parcel->payload.size() >= kPayloadHeader) {
    std::memcpy(&mass, parcel->payload.data() + sizeof(double), sizeof mass);
  }
  return mass;
}

}  // namespace sotto
