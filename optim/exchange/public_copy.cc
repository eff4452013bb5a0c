#include <sotto/optim/exchange/public_copy.h>

#include <functional>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {

PublicCopy::PublicCopy(const LocalNode& node)
    : copy(node.vector()), pull(node.vector()), changes_(node) {}

Status PublicCopy::sum_changes(const LocalNode& node, Mailbox& mail, std::span<float> change,
                               EncodingIn encoding_in) {
  node.ops().fill(0, change);
  const Status own =
      node.encoder().decode_own(encoding_in(mail.sent()), node.self_weight() - 1, change);
  return own.ok() ? decode_neighbours(node, mail, change, encoding_in) : own;
}

Status PublicCopy::take_changes(const LocalNode& node, Mailbox& mail, std::span<float> scratch,
                                const Compressor::Visitor& then, EncodingIn encoding_in) {
  changes_.take_gossip(node, mail, encoding_in);
  const auto take = [&](std::size_t first, std::span<const float> change) {
    const auto piece = std::span(pull).subspan(first, change.size());
    node.ops().axpy(1, change, piece);
    then(first, piece);
  };
  return changes_.show(node, mail, scratch, std::ref(take));
}

void PublicCopy::save(ByteBuffer& out) const {
  write_floats(copy, out);
  write_floats(pull, out);
}

Status PublicCopy::load(ByteReader& in, std::string_view what) {
  if (Status status = read_floats(in, fmt::format("public {}", what), copy); !status.ok()) {
    return status;
  }
  return read_floats(in, fmt::format("pull on the {}", what), pull);
}

}  // namespace sotto
