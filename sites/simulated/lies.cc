#include <sotto/sites/simulated/lies.h>

#include <algorithm>
#include <cstring>
#include <variant>

#include <sotto/sites/core/message.h>

namespace sotto::sites {
namespace {

/// Share and mass, or version and number of changes, before what a compressor made.
constexpr std::size_t kPayloadHeader = 2 * sizeof(double);
constexpr double kMinted = 1000;
constexpr float kAbsurd = 3e37F;
/// A round that a site cannot have come to.
constexpr Round kFarAhead = Round{1} << 47;

/// In place of the model's share: one value that is finite, and that no model survives.
std::vector<std::byte> absurd(std::span<const std::byte> payload, std::size_t dimension,
                              Compressor& compressor) {
  std::vector<std::byte> made(payload.begin(), payload.begin() + kPayloadHeader);
  const bool whole = payload.size() == kPayloadHeader + dimension * sizeof(float);
  const std::vector<float> values(dimension, kAbsurd);
  made.resize(kPayloadHeader +
              std::max(compressor.max_bytes(dimension), sizeof(float) * dimension));
  if (whole) {
    std::memcpy(made.data() + kPayloadHeader, values.data(), dimension * sizeof(float));
    made.resize(payload.size());
  } else {
    made.resize(kPayloadHeader +
                compressor.encode(values, {}, std::span(made).subspan(kPayloadHeader)));
  }
  return made;
}

std::vector<std::byte> with_mass(std::span<const std::byte> payload, double mass) {
  std::vector<std::byte> made(payload.begin(), payload.end());
  std::memcpy(made.data() + sizeof(double), &mass, sizeof mass);
  return made;
}

std::optional<std::vector<std::byte>> lie_in(LieKind kind, Parcel parcel, std::size_t dimension,
                                             Compressor& compressor) {
  std::vector<std::byte> payload;
  switch (kind) {
    case LieKind::takes:
    case LieKind::swallows:
      return std::nullopt;
    case LieKind::mints:
      payload = with_mass(parcel.payload, kMinted);
      break;
    case LieKind::kills:
      payload = absurd(parcel.payload, dimension, compressor);
      break;
    case LieKind::late:
    case LieKind::ahead:
      return encode(parcel);
  }
  parcel.payload = payload;
  return encode(parcel);
}

}  // namespace

std::optional<std::vector<std::byte>> lie_about(LieKind kind, std::span<const std::byte> message,
                                                std::size_t dimension, Compressor& compressor) {
  const auto parsed = parse(message, dimension);
  const std::vector<std::byte> honest(message.begin(), message.end());
  if (!parsed.ok()) {
    return honest;
  }
  if (const auto* parcel = std::get_if<Parcel>(&*parsed)) {
    return lie_in(kind, *parcel, dimension, compressor);
  }
  if (const auto* hello = std::get_if<Hello>(&*parsed)) {
    Hello said = *hello;
    if (kind == LieKind::takes || kind == LieKind::swallows) {
      said.next = said.oldest;  // nothing is to come
    }
    if (kind == LieKind::ahead && said.has_model) {
      said.round += kFarAhead;
    }
    return encode(said);
  }
  if (const auto* receipt = std::get_if<Receipt>(&*parsed)) {
    if (kind == LieKind::swallows) {
      return std::nullopt;
    }
    Receipt said = *receipt;
    said.round += kind == LieKind::ahead ? kFarAhead : 0;
    return encode(said);
  }
  if (const auto* model = std::get_if<Model>(&*parsed)) {
    Model said = *model;
    said.round += kind == LieKind::ahead ? kFarAhead : 0;
    if (kind == LieKind::kills) {
      said.values.assign(dimension, kAbsurd);
    }
    return encode(said);
  }
  return honest;
}

double mass_in(std::span<const std::byte> message, std::size_t dimension) {
  const auto parsed = parse(message, dimension);
  const auto* parcel = parsed.ok() ? std::get_if<Parcel>(&*parsed) : nullptr;
  double mass = 0;
  if (parcel != nullptr && parcel->payload.size() >= kPayloadHeader) {
    std::memcpy(&mass, parcel->payload.data() + sizeof(double), sizeof mass);
  }
  return mass;
}

}  // namespace sotto::sites
