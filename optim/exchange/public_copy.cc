#include <sotto/optim/exchange/public_copy.h>

#include <functional>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {

PublicCopy::PublicCopy(const LocalNode& node) : copy(node.dimension()), pull(node.dimension()) {
  terms_.reserve(1 + max_in_degree(node));
}

Status PublicCopy::sum_changes(const LocalNode& node, Mailbox& mail, std::span<float> change,
                               EncodingIn encoding_in) {
  node.ops().fill(0, change);
  const Status own = node.decode_own(encoding_in(mail.sent()), node.self_weight() - 1, change);
  return own.ok() ? decode_neighbours(node, mail, change, encoding_in) : own;
}

Status PublicCopy::take_changes(const LocalNode& node, Mailbox& mail, std::span<float> scratch,
                                const Compressor::Visitor& then) {
  terms_.clear();
  terms_.push_back({mail.sent(), node.self_weight() - 1});
  for (std::size_t edge = 0; edge < mail.from().size(); ++edge) {
    terms_.push_back({mail.payload(edge), mail.from()[edge].weight});
  }
  const auto take = [&](std::size_t first, std::span<const float> change) {
    const auto piece = std::span(pull).subspan(first, change.size());
    node.ops().axpy(1, change, piece);
    then(first, piece);
  };
  std::size_t refused = 0;
  const Status status = node.compressor().decode_sum(terms_, scratch, std::ref(take), refused);
  if (status.ok()) {
    return {};
  }
  return refused == 0 ? node.here(status.with_context("own encoding"))
                      : mail.refuse(refused - 1, status);
}

void PublicCopy::save(ByteBuffer& out) const {
  write_floats(copy, out);
  write_floats(pull, out);
}

Status PublicCopy::load(ByteReader& in, std::string_view what) {
  if (Status status = read_floats(in, fmt::format("public {}", what), copy); !status) {
    return status;
  }
  return read_floats(in, fmt::format("pull on the {}", what), pull);
}

}  // namespace sotto
