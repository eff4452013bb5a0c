#include <sotto/compress/coded_topk.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

#include "internal/coded_values.h"
#include "internal/contracts.h"
#include "internal/feedback.h"
#include "internal/kept_runs.h"
#include "internal/payload.h"
#include "internal/rice.h"
#include "internal/run_selector.h"
#include "internal/shares.h"
#include "internal/value_groups.h"

namespace sotto {
namespace {

using internal::KeptRuns;
using internal::ValueGroups;

constexpr std::size_t kCodedHeaderBytes = sizeof(std::uint8_t) + 2 * sizeof(std::uint32_t);
/// Elements that are fetched before the first of them is needed.
constexpr std::size_t kFetchedAhead = 64;

/// The parts of a payload behind its header.
template <typename Byte>
struct CodedParts {
  std::span<Byte> parameters;  ///< parameters of all groups; empty where values travel as they are
  std::span<Byte> codes;       ///< codes, or the values
  std::span<Byte> indices;
};

class CodedTopkCompressor final : public Compressor {
 public:
  CodedTopkCompressor(const CodedTopkOptions& options, const Ops& ops)
      : options_(options), ops_(ops) {}

  std::string spec() const override {
    return fmt::format("topk:{},values={},chunk={}", options_.keep_ratio, options_.value_bits,
                       options_.chunk);
  }
  std::uint16_t wire_id() const override { return kCodedTopkWireId; }
  std::size_t max_bytes(std::size_t elements) const override;
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override { return make_coded_topk(options_, ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    return *encode_runs(x, {}, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    const auto used = encode_runs(v, {&prepare, v}, out);
    return used ? finish_prepared(prepare, out.first(*used)) : std::nullopt;
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  KeptRuns cut(std::size_t elements) const {
    return {elements, options_.chunk, options_.keep_ratio};
  }
  bool coded() const { return options_.value_bits != internal::kFloatBits; }
  internal::CodedValues values() const { return {options_.value_bits, ops_}; }
  ValueGroups groups(const KeptRuns& runs) const { return {runs.total(), options_.value_bits}; }
  std::size_t parameter_bytes(const KeptRuns& runs) const {
    return coded() ? groups(runs).count() * values().parameters() * sizeof(float) : 0;
  }
  std::size_t value_bytes(const KeptRuns& runs) const {
    return coded() ? groups(runs).total_code_bytes() : runs.total() * sizeof(float);
  }

  /// The input of an encoding, and the place of its output.
  struct Job {
    const KeptRuns& runs;
    const internal::Origin& origin;
    std::span<const float> x;
    std::span<std::byte> parameters;
    std::span<std::byte> codes;
  };
  std::optional<std::size_t> encode_runs(std::span<const float> x, const internal::Origin& origin,
                                         std::span<std::byte> out);
  /// Runs begin … end − 1, and the groups that lie within. False: called off.
  bool encode_share(const Job& job, internal::RunSelector& selector, std::size_t begin,
                    std::size_t end);
  /// Codes a group, and takes what is sent of it from the vector where its residual is wanted.
  void encode_group(const Job& job, std::size_t group);
  /// Codes all groups of which two shares have a part.
  void encode_groups_between(const Job& job, const internal::Shares& shares);
  void leave_out(const Job& job, std::size_t begin, std::size_t end) const;
  std::size_t write_indices(const KeptRuns& runs, std::span<std::byte> out) const;

  Result<CodedParts<const std::byte>> read(std::span<const std::byte> bytes,
                                           const KeptRuns& runs) const;
  Status judge_values(const KeptRuns& runs, const CodedParts<const std::byte>& parts) const;
  /// All indices into decoded_, once they are judged.
  Status read_indices(const KeptRuns& runs, std::span<const std::byte> bytes) const;
  /// y ← y + scale × values, at the indices decoded_[first …].
  void add(std::size_t first, std::span<const float> values, float scale, std::span<float> y) const;

  CodedTopkOptions options_;
  const Ops& ops_;
  std::vector<internal::RunSelector> selectors_;  ///< selectors, one for each share
  std::vector<std::uint32_t> indices_;            ///< indices of the kept elements
  std::vector<float> kept_;                       ///< kept values; once coded, what is sent of them
  mutable std::vector<std::uint32_t> decoded_;
};

std::size_t CodedTopkCompressor::max_bytes(std::size_t elements) const {
  const KeptRuns runs = cut(elements);
  return kCodedHeaderBytes + parameter_bytes(runs) + value_bytes(runs) +
         (runs.index_bits_bound() + 7) / 8;
}

Contract CodedTopkCompressor::contract(std::size_t elements) const {
  if (elements == 0) {
    return internal::exact_contract();
  }
  const KeptRuns runs = cut(elements);
  const std::size_t longest = groups(runs).longest();
  const double share = runs.least(std::divides<>());
  const auto floored = [](double delta) {
    Contract contract = internal::contraction_contract(delta);
    contract.floor_per_element = 0x1p-149;
    return contract;
  };
  if (!coded() || (values().fitted() && longest <= values().levels())) {
    return internal::contraction_contract(share);
  }
  if (!values().fitted()) {
    return floored(share * values().least_kept_by_grid(longest));
  }
  const double spread = runs.least([](double kept, double size) { return kept * kept / size; });
  return floored(std::min(1.0, spread) / static_cast<double>(longest));
}

std::optional<std::size_t> CodedTopkCompressor::encode_runs(std::span<const float> x,
                                                            const internal::Origin& origin,
                                                            std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(), "topk: more than 2^32 − 1 elements");
  const KeptRuns runs = cut(x.size());
  ByteWriter writer(out);
  writer.write(static_cast<std::uint8_t>(options_.value_bits));
  writer.write(static_cast<std::uint32_t>(options_.chunk));
  writer.write(static_cast<std::uint32_t>(runs.total()));
  const auto parameters = writer.reserve(parameter_bytes(runs));
  const Job job{runs, origin, x, parameters, writer.reserve(value_bytes(runs))};
  indices_.resize(runs.total());
  kept_.resize(runs.total());
  const internal::Shares shares(workers(), runs.count(), x.size());
  while (selectors_.size() < shares.count()) {
    selectors_.emplace_back(ops_);
  }
  std::array<bool, internal::Shares::kMost> done{};
  shares.each([&](std::size_t share, std::size_t begin, std::size_t end) {
    done[share] = encode_share(job, selectors_[share], begin, end);
  });
  if (!std::ranges::all_of(std::span(done).first(shares.count()), std::identity())) {
    return std::nullopt;
  }
  if (coded()) {
    encode_groups_between(job, shares);
  } else {
    ByteWriter(job.codes).write_bytes(std::as_bytes(std::span(kept_)));
  }
  return writer.position() + write_indices(runs, out.subspan(writer.position()));
}

bool CodedTopkCompressor::encode_share(const Job& job, internal::RunSelector& selector,
                                       std::size_t begin, std::size_t end) {
  const KeptRuns& runs = job.runs;
  const ValueGroups groups = this->groups(runs);
  auto feedback = job.origin.feedback(runs.end(begin), runs.end(end));
  std::size_t group = groups.from(runs.kept_before(begin));
  for (std::size_t run = begin; run < end; ++run) {
    const auto x = internal::chunk_of(job.x, feedback, runs.first(run), runs.size(run));
    if (!x) {
      return false;
    }
    const std::size_t at = runs.kept_before(run);
    const std::size_t next = at + runs.kept(run);
    selector.select(*x, runs.first(run), std::span(indices_).subspan(at, next - at),
                    std::span(kept_).subspan(at, next - at));
    if (!coded()) {
      leave_out(job, at, next);
    }
    for (; coded() && group < groups.count() && groups.end(group) <= next; ++group) {
      encode_group(job, group);
    }
  }
  return true;
}

void CodedTopkCompressor::encode_group(const Job& job, std::size_t group) {
  const ValueGroups groups = this->groups(job.runs);
  const std::size_t each = values().parameters() * sizeof(float);
  values().encode(std::span(kept_).subspan(groups.begin(group), groups.size(group)),
                  job.parameters.subspan(group * each, each),
                  job.codes.subspan(groups.code_offset(group), groups.code_bytes(group)));
  leave_out(job, groups.begin(group), groups.end(group));
}

void CodedTopkCompressor::encode_groups_between(const Job& job, const internal::Shares& shares) {
  const ValueGroups groups = this->groups(job.runs);
  std::size_t next = 0;  // all groups before it are coded
  for (std::size_t share = 1; share < shares.count(); ++share) {
    const std::size_t border = job.runs.kept_before(shares.first(share));
    const std::size_t after = groups.from(border);
    if (after > next && groups.end(after - 1) > border) {
      encode_group(job, after - 1);
      next = after;
    }
  }
}

void CodedTopkCompressor::leave_out(const Job& job, std::size_t begin, std::size_t end) const {
  if (job.origin.prepare == nullptr || !job.origin.prepare->residual) {
    return;
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (i + kFetchedAhead < end) {
      __builtin_prefetch(&job.origin.v[indices_[i + kFetchedAhead]], 1);
    }
    float& element = job.origin.v[indices_[i]];
    element = element - kept_[i];
  }
}

std::size_t CodedTopkCompressor::write_indices(const KeptRuns& runs,
                                               std::span<std::byte> out) const {
  internal::RiceWriter gaps(out, runs.rice());
  std::size_t at = 0;
  for (std::size_t run = 0; run < runs.count(); ++run) {
    const std::size_t next = at + runs.kept(run);
    if (runs.kept(run) < runs.size(run)) {
      gaps.restart(runs.first(run));
      gaps.write(std::span(indices_).subspan(at, next - at));
    }
    at = next;
  }
  return gaps.finish();
}

Result<CodedParts<const std::byte>> CodedTopkCompressor::read(std::span<const std::byte> bytes,
                                                              const KeptRuns& runs) const {
  ByteReader reader(bytes);
  const auto bits = reader.read<std::uint8_t>();
  const auto chunk = reader.read<std::uint32_t>();
  const auto total = reader.read<std::uint32_t>();
  CodedParts<const std::byte> parts;
  parts.parameters = reader.take(parameter_bytes(runs));
  parts.codes = reader.take(value_bytes(runs));
  if (reader.failed() || bits != options_.value_bits || chunk != options_.chunk ||
      total != runs.total()) {
    return internal::malformed(fmt::format(
        "topk: {} bytes with {} values of {} bits, in runs of {}, where {} of {} bits "
        "are due, in runs of {}",
        bytes.size(), total, bits, chunk, runs.total(), options_.value_bits, options_.chunk));
  }
  parts.indices = reader.take(reader.remaining());
  return parts;
}

Status CodedTopkCompressor::judge_values(const KeptRuns& runs,
                                         const CodedParts<const std::byte>& parts) const {
  if (!coded()) {
    for (std::size_t i = 0; i < runs.total(); ++i) {
      if (!std::isfinite(internal::load<float>(parts.codes, i))) {
        return internal::non_finite(
            fmt::format("topk: value {} of {} is not finite", i, runs.total()));
      }
    }
    return {};
  }
  const ValueGroups groups = this->groups(runs);
  const std::size_t each = values().parameters() * sizeof(float);
  for (std::size_t group = 0; group < groups.count(); ++group) {
    const auto codes = parts.codes.subspan(groups.code_offset(group), groups.code_bytes(group));
    if (Status status = values().judge(group, parts.parameters.subspan(group * each, each), codes,
                                       groups.size(group));
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Status CodedTopkCompressor::read_indices(const KeptRuns& runs,
                                         std::span<const std::byte> bytes) const {
  decoded_.resize(runs.total());
  internal::RiceReader indices(bytes, runs.rice(), 0);
  std::size_t at = 0;
  for (std::size_t run = 0; run < runs.count(); ++run) {
    const auto places = std::span(decoded_).subspan(at, runs.kept(run));
    at += places.size();
    if (places.size() == runs.size(run)) {
      std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(runs.first(run)));
      continue;
    }
    indices.restart(runs.first(run), runs.first(run) + runs.size(run));
    if (const std::size_t read = indices.read(places); read < places.size()) {
      return internal::malformed(
          fmt::format("topk: index {} of {} in run {} is beyond its {} elements or is cut off",
                      read, places.size(), run, runs.size(run)));
    }
  }
  return indices.finished() ? Status()
                            : internal::malformed("topk: something follows the last index");
}

void CodedTopkCompressor::add(std::size_t first, std::span<const float> values, float scale,
                              std::span<float> y) const {
  const auto places = std::span<const std::uint32_t>(decoded_).subspan(first, values.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i + kFetchedAhead < places.size()) {
      __builtin_prefetch(&y[places[i + kFetchedAhead]], 1);
    }
    float& target = y[places[i]];
    target = target + scale * values[i];
  }
}

Status CodedTopkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                       std::span<float> y) const {
  const KeptRuns runs = cut(y.size());
  const auto parts = read(bytes, runs);
  if (!parts) {
    return parts.status();
  }
  if (Status status = judge_values(runs, *parts); !status.ok()) {
    return status;
  }
  if (Status status = read_indices(runs, parts->indices); !status.ok()) {
    return status;
  }
  std::array<float, ValueGroups::kLongest> room{};
  const ValueGroups groups = this->groups(runs);
  const std::size_t each = values().parameters() * sizeof(float);
  for (std::size_t group = 0; group < groups.count(); ++group) {
    const auto decoded = std::span(room).first(groups.size(group));
    if (coded()) {
      values().decode(parts->parameters.subspan(group * each, each),
                      parts->codes.subspan(groups.code_offset(group), groups.code_bytes(group)),
                      decoded);
    } else {
      ByteReader(parts->codes.subspan(groups.begin(group) * sizeof(float))).read_into(decoded);
    }
    add(groups.begin(group), decoded, scale, y);
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_coded_topk(const CodedTopkOptions& options, const Ops& ops) {
  internal::check_keep_ratio(options.keep_ratio);
  const bool few = options.value_bits >= 1 && options.value_bits <= 8;
  if (!few && options.value_bits != internal::kFloatBits) {
    refuse("topk values", std::to_string(options.value_bits), "1 to 8 bits, or 32, would do");
  }
  if (options.chunk > internal::kMostChunk) {
    refuse("topk chunk", std::to_string(options.chunk), "at most 2^32 − 1 elements");
  }
  return std::make_unique<CodedTopkCompressor>(options, ops);
}

}  // namespace sotto
