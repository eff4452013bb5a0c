#include "device_compressor.h"

#include <utility>

#include <sotto/compress/topk.h>

#include "device_codec.h"
#include "device_topk.h"

namespace sotto::cuda {

std::unique_ptr<Compressor> make_device_compressor(const Compressor& host, const DeviceOps& ops,
                                                   Queue& queue) {
  auto own = host.undecorated().clone();
  return own->wire_id() == kTopkWireId ? make_device_topk(std::move(own), ops, queue)
                                       : make_device_codec(std::move(own), ops, queue);
}

DeviceCompressor::~DeviceCompressor() {
  if (!queue_.settle()) {
    workspace_.abandon();
  }
}

std::unique_ptr<Compressor> DeviceCompressor::clone() const {
  return make_device_compressor(*host_, ops_, queue_);
}

std::optional<std::size_t> DeviceCompressor::encode_prepared(const Prepare& prepare,
                                                             std::span<float> v,
                                                             const RandomKey& key,
                                                             std::span<std::byte> out) {
  if (!prepare.make(0, v)) {
    return std::nullopt;
  }
  const std::size_t used = prepare.residual ? encode_to_residual(v, key, out) : encode(v, key, out);
  return queue_.sound() ? finish_prepared(prepare, out.first(used)) : std::nullopt;
}

Status DeviceCompressor::decode_sum(std::span<const Term> terms, std::span<float> scratch,
                                    const Visitor& visit, std::size_t& refused) const {
  ops_.fill(0, scratch);
  for (refused = 0; refused < terms.size(); ++refused) {
    if (Status status = decode_add(terms[refused].bytes, terms[refused].scale, scratch);
        !status.ok()) {
      return status;
    }
  }
  visit(0, scratch);
  return {};
}

}  // namespace sotto::cuda
