#include <sotto/sites/core/mixing/public_copy.h>

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/kernels/ops.h>
#include <sotto/optim/state_io.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {
namespace {

constexpr std::uint64_t kWhole = 1;

}  // namespace

CopyHeader read_copy_header(ByteReader& in) {
  const auto version = in.read<std::uint64_t>();
  const auto changes = in.read<std::uint64_t>();
  return {.version = version & ~kWhole, .changes = changes, .whole = (version & kWhole) != 0};
}

void write_copy_header(const CopyHeader& header, std::span<std::byte> out) {
  ByteWriter to(out);
  to.write(header.whole ? header.version | kWhole : header.version);
  to.write(header.changes);
}

Status check_copy_payload(std::span<const std::byte> payload, std::size_t dimension,
                          std::size_t most) {
  ByteReader in(payload);
  const CopyHeader header = read_copy_header(in);
  const bool other_size = header.whole && in.remaining() != dimension * sizeof(float);
  if (in.failed() || payload.size() > most || other_size) {
    return {Fault::malformed, fmt::format("a public copy or change of {} bytes", payload.size())};
  }
  if (header.changes > kMostCount) {
    return {Fault::malformed, fmt::format("a public copy after {} changes", header.changes)};
  }
  return {};
}

CopyHeader PublicCopy::before() const {
  return {.version = version_.before(changes_, model, host_ops()), .changes = changes_};
}

void PublicCopy::changed(const CopyHeader& header, std::span<const std::byte> encoding) {
  version_.advance({.version = header.version, .encoding = encoding, .payload_bytes = 0});
  ++changes_;
}

void PublicCopy::came(const CopyHeader& header) {
  version_ = ModelVersion(header.version);
  changes_ = header.changes;
}

Payload PublicCopy::whole() const {
  const auto floats = std::as_bytes(std::span(model));
  std::vector<std::byte> payload(CopyHeader::kBytes);
  payload.reserve(payload.size() + floats.size());
  write_copy_header({.version = version_.chain(), .changes = changes_, .whole = true}, payload);
  payload.insert(payload.end(), floats.begin(), floats.end());
  return std::make_shared<const std::vector<std::byte>>(std::move(payload));
}

void PublicCopy::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(held()));
  if (held()) {
    out.write(version_.chain());
    out.write(changes_);
    write_floats(model, out);
  }
}

Status PublicCopy::load(ByteReader& in, std::size_t dimension) {
  const auto held = in.read<std::uint8_t>();
  *this = {};
  if (!in.failed() && held == 0) {
    return {};
  }
  version_ = ModelVersion(in.read<std::uint64_t>());
  changes_ = in.read<std::uint64_t>();
  if (in.failed() || held > 1 || (version_.chain() & kWhole) != 0 || changes_ > kMostCount) {
    return {Fault::malformed, "checkpoint has a public copy that cannot be"};
  }
  model.resize(dimension);
  return read_floats(in, "public copy", model);
}

}  // namespace sotto::sites
