#include <sotto/optim/exchange/frame_sum.h>

#include <sotto/optim/exchange/neighbours.h>

namespace sotto {

FrameSum::FrameSum(const LocalNode& node) { terms_.reserve(2 + max_in_degree(node)); }

void FrameSum::clear() {
  terms_.clear();
  own_ = 0;
}

void FrameSum::add_own(std::span<const std::byte> encoding, float scale) {
  check(own_ == terms_.size(), "own encodings come first");
  terms_.push_back({encoding, scale});
  ++own_;
}

void FrameSum::add_next(std::span<const std::byte> encoding, float scale) {
  terms_.push_back({encoding, scale});
}

void FrameSum::take_gossip(const LocalNode& node, const Mailbox& mail, EncodingIn encoding_in) {
  clear();
  add_own(encoding_in(mail.sent()), node.self_weight() - 1);
  for (std::size_t edge = 0; edge < mail.from().size(); ++edge) {
    add_next(encoding_in(mail.payload(edge)), mail.from()[edge].weight);
  }
}

Status FrameSum::show(const LocalNode& node, Mailbox& mail, std::span<float> scratch,
                      const Compressor::Visitor& then) const {
  std::size_t refused = 0;
  const Status status = node.compressor().decode_sum(terms_, scratch, then, refused);
  if (status.ok()) {
    return {};
  }
  return refused < own_ ? node.here(status.with_context("own encoding"))
                        : mail.refuse(refused - own_, status);
}

}  // namespace sotto
