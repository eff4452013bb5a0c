#include <sotto/optim/exchange/public_copy.h>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {

Status PublicCopy::sum_changes(const LocalNode& node, Mailbox& mail, std::span<float> change,
                               EncodingIn encoding_in) {
  node.ops().fill(0, change);
  const Status own = node.decode_own(encoding_in(mail.sent()), node.self_weight() - 1, change);
  return own.ok() ? decode_neighbours(node, mail, change, encoding_in) : own;
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
