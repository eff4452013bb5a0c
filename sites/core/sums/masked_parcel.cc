#include <sotto/sites/core/sums/masked_parcel.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kEntryBytes = 2 * sizeof(std::uint64_t) + sizeof(Bytes32);

}  // namespace

const MaskedHeader::Entry* MaskedHeader::about(std::uint64_t id) const {
  const auto at = std::ranges::find(entries, id, &Entry::id);
  return at == entries.end() ? nullptr : &*at;
}

std::uint64_t MaskedHeader::tag_with(std::uint64_t id) const {
  const Entry* const entry = about(id);
  return entry == nullptr ? 0 : entry->tag;
}

std::size_t max_masked_bytes(std::size_t words) {
  return sizeof(Round) + sizeof(std::uint16_t) + kMostSummed * kEntryBytes + sizeof(Bytes32) +
         words * sizeof(std::uint32_t);
}

std::optional<MaskedHeader> read_masked_header(ByteReader& in) {
  MaskedHeader header;
  header.round = in.read<Round>();
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || count >= kMostSummed) {
    return std::nullopt;
  }
  for (std::uint16_t k = 0; k < count; ++k) {
    MaskedHeader::Entry& entry = header.entries.emplace_back();
    entry.id = in.read<std::uint64_t>();
    entry.tag = in.read<std::uint64_t>();
    in.read_into(std::span<std::uint8_t>(entry.share));
  }
  in.read_into(std::span<std::uint8_t>(header.commitment));
  if (in.failed()) {
    return std::nullopt;
  }
  return header;
}

Status check_masked(std::span<const std::byte> payload, std::size_t words) {
  ByteReader in(payload);
  const auto header = read_masked_header(in);
  if (!header || in.remaining() != words * sizeof(std::uint32_t)) {
    return {Fault::malformed, fmt::format("a masked parcel of {} bytes", payload.size())};
  }
  const bool ascending =
      std::ranges::adjacent_find(header->entries, std::greater_equal(), &MaskedHeader::Entry::id) ==
      header->entries.end();
  if (!ascending) {
    return {Fault::malformed, "a masked parcel whose sites are not in their order"};
  }
  return {};
}

Payload masked_payload(const MaskedHeader& header, std::span<const std::uint32_t> words) {
  ByteBuffer out;
  out.write(header.round);
  out.write(static_cast<std::uint16_t>(header.entries.size()));
  for (const MaskedHeader::Entry& entry : header.entries) {
    out.write(entry.id);
    out.write(entry.tag);
    out.write_span(std::span<const std::uint8_t>(entry.share));
  }
  out.write_span(std::span<const std::uint8_t>(header.commitment));
  out.write_span(words);
  return std::make_shared<const std::vector<std::byte>>(std::move(out).take());
}

}  // namespace sotto::sites
