#include <sotto/optim/node_encoder.h>

#include <functional>

#include <fmt/format.h>

#include <sotto/optim/local_node.h>

namespace sotto {

std::span<const std::byte> NodeEncoder::encode(std::span<const float> x, std::span<std::byte> out,
                                               std::uint32_t part) {
  const std::size_t bytes = node_.compressor().encode(x, node_.rounding_key(part), out);
  saturated_ += node_.compressor().saturated();
  return out.first(bytes);
}

std::span<const std::byte> NodeEncoder::encode_residual(std::span<float> v,
                                                        std::span<std::byte> out,
                                                        std::uint32_t part) {
  return encode_residual(node_.compressor(), v, out, part);
}

std::span<const std::byte> NodeEncoder::encode_residual(Compressor& codec, std::span<float> v,
                                                        std::span<std::byte> out,
                                                        std::uint32_t part) {
  const std::size_t bytes = codec.encode_residual(v, node_.rounding_key(part), out);
  saturated_ += codec.saturated();
  return out.first(bytes);
}

Result<std::span<const std::byte>> NodeEncoder::encode_made(const Compressor::Prepare& prepare,
                                                            std::span<float> v,
                                                            std::span<std::byte> out,
                                                            std::string_view what) {
  const auto bytes = node_.compressor().encode_prepared(prepare, v, node_.rounding_key(0), out);
  if (!bytes) {
    prepare.make(0, v);  // for the count and the place, of what has moved as it is now
    const Status status = node_.require_finite(v, what);
    return status.ok()
               ? node_.fault(Fault::non_finite,
                             fmt::format("the {} is too large to be encoded by {}; lower the "
                                         "learning rate, or look at the data",
                                         what, node_.compressor().spec()))
               : status;
  }
  saturated_ += node_.compressor().saturated();
  return std::span<const std::byte>(out.first(*bytes));
}

Result<std::span<const std::byte>> NodeEncoder::encode_compensated(std::span<const float> x,
                                                                   std::span<const float> error,
                                                                   std::span<float> v,
                                                                   std::span<std::byte> out) {
  const auto compensate = [&](std::size_t first, std::span<float> piece) {
    return node_.ops().combine(
        {{1, x.subspan(first, piece.size())}, {1, error.subspan(first, piece.size())}}, piece);
  };
  return encode_made({std::ref(compensate), {x, error}}, v, out, "compensated model");
}

Status NodeEncoder::decode_own(std::span<const std::byte> encoding, float scale,
                               std::span<float> y) const {
  return node_.here(node_.compressor().decode_add(encoding, scale, y).with_context("own encoding"));
}

}  // namespace sotto
