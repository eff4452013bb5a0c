#include "harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/compress/registry.h>

#include "algorithms.h"
#include "channels.h"
#include "files.h"
#include "graphs.h"
#include "groups.h"
#include "messages.h"
#include "sites.h"
#include "trust.h"
#ifdef SOTTO_FUZZ_PROGRAM
#include "configs.h"
#endif

namespace sotto_fuzz {
namespace {

using sotto::ByteReader;
using sotto::check;

struct Family {
  std::string_view name;
  std::vector<std::string> specs;
};

/// What is tried of families whose example alone would leave code out. The bytes of their corpora
/// choose by this order.
const std::vector<Family>& chosen_specs() {
  static const std::vector<Family> chosen = {
      {"quant",
       {"quant:8", "quant:4,chunk=64", "quant:1,chunk=7", "quant:3,chunk=0", "quant:2,chunk=100",
        "quant:8,chunk=1"}},
      {"grid", {"grid:8:0.01", "grid:3:1e30", "grid:1:1"}},
      {"sign", {"sign", "sign,chunk=0", "sign,chunk=10", "sign,chunk=64"}},
      {"topk",
       {"topk:0.1", "topk:0.001", "topk:0.5", "topk:1", "topk:0.1,values=2,chunk=64",
        "topk:0.3,values=4,chunk=7", "topk:0.2,values=1,chunk=0", "topk:0.1,values=6",
        "topk:0.1,values=32"}},
      {"randk",
       {"randk:0.1", "randk:0.001", "randk:1", "randk:0.5,values=3",
        "randk:0.5/topk:0.2,values=4,chunk=16"}},
      {"lowrank", {"lowrank:1", "lowrank:3,start=random"}},
      {"dct",
       {"dct/topk:0.1", "dct/none", "dct/topk:0.3,values=2,chunk=64", "dct/quant:3,chunk=7",
        "dct/randk:0.5/topk:0.2,values=4"}},
      {"per_tensor",
       {"quant:4; 1d=none", "sign; *.w=topk:0.1; under:20=fp16", "none; a.*=randk:0.1"}},
      {"outlier", {"outlier:4,chunk=64", "outlier:2,k=1", "outlier:8,chunk=0,k=0.5"}},
  };
  return chosen;
}

/// All families of the registry, each with the specifications that are tried of it.
const std::vector<Family>& families() {
  static const std::vector<Family> families = [] {
    std::vector<Family> all;
    for (const sotto::CompressorInfo& info : sotto::compressors()) {
      const auto found = std::ranges::find(chosen_specs(), info.name, &Family::name);
      all.push_back(found != chosen_specs().end() ? *found
                                                  : Family{info.name, {std::string(info.example)}});
    }
    return all;
  }();
  return families;
}

/// A matrix, a bias and the rest, as far as the elements go.
sotto::ParameterLayout tensors(std::size_t elements) {
  sotto::ParameterLayout layout;
  append_block(layout, "a.w", {elements / 8, 5});
  append_block(layout, "a.b", {std::min<std::size_t>(elements - dimension_of(layout), 9)});
  append_block(layout, "rest.w", {elements - dimension_of(layout), 1});
  return layout;
}

bool all_finite(std::span<const float> x) {
  return std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

/// Some finite values that a decoder adds to.
std::vector<float> accumulator(std::size_t elements) {
  std::vector<float> y(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    y[i] = 0.5F * static_cast<float>(i % 7) - 1.0F;
  }
  return y;
}

void decode(std::string_view family, std::span<const std::byte> input) {
  const auto specs = specs_of(family);
  ByteReader in(input);
  const auto variant = in.read<std::uint8_t>();
  const std::size_t elements = in.read<std::uint16_t>() % (kMostElements + 1);
  const bool fit = in.read<std::uint8_t>() % 2 == 1;
  const auto rest = in.take(in.remaining());
  const auto compressor = make(specs[variant % specs.size()], elements);
  // A buffer of just this length, so that the sanitizer sees a read beyond it.
  std::vector<std::byte> payload(rest.begin(), rest.end());
  if (fit) {
    payload.resize(compressor->max_bytes(elements));
  }
  const auto start = accumulator(elements);
  auto y = start;
  const auto status = compressor->decode_add(payload, 1.0F, y);
  if (status.ok()) {
    check(all_finite(y), "a decoder that succeeds gives finite values");
  } else {
    check(std::ranges::equal(std::as_bytes(std::span(y)), std::as_bytes(std::span(start))),
          "a decoder that fails leaves y untouched");
    check(status.fault() == sotto::Fault::malformed || status.fault() == sotto::Fault::non_finite,
          "a decoder fails with malformed or non_finite");
  }
}

void encode(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  std::size_t variant = in.read<std::uint8_t>();
  const auto form = variant % 2 == 0 ? sotto::ContractKind::any : sotto::ContractKind::contraction;
  variant /= 2;
  const Family& family = families()[variant % families().size()];
  variant /= families().size();
  std::vector<float> x(std::min(in.remaining() / sizeof(float), kMostElements));
  const auto compressor = make(family.specs[variant % family.specs.size()], x.size(), form);
  in.read_into(std::span(x));
  std::ranges::replace_if(
      x, [](float value) { return !std::isfinite(value); }, 1e38F);
  std::vector<std::byte> out(compressor->max_bytes(x.size()));
  const std::size_t used = compressor->encode(x, {.seed = 1, .rank = 2, .round = 3}, out);
  check(used <= out.size(), "an encoding fits max_bytes");
  check(compressor->saturated() <= x.size(), "no more elements saturate than there are");
  std::vector<float> y(x.size());
  const auto status = compressor->decode_add(std::span(out).first(used), 1.0F, y);
  check(status.ok(), "an encoding of finite values decodes");
  check(all_finite(y), "an encoding decodes to finite values");
}

void parse_spec(std::string_view /*name*/, std::span<const std::byte> input) {
  const std::string spec(reinterpret_cast<const char*>(input.data()), input.size());
  std::unique_ptr<sotto::Compressor> compressor;
  try {
    compressor = sotto::make_compressor(spec);
  } catch (const sotto::Error&) {
    return;
  }
  const std::string canonical = compressor->spec();
  check(sotto::make_compressor(canonical)->spec() == canonical,
        "a printed specification builds the same compressor");
  compressor->contract(1000);
  compressor->max_bytes(1000);
}

void seal_and_parse(ByteReader& in) {
  sotto::FrameHeader header;
  header.run_id = in.read<std::uint64_t>();
  header.algorithm = in.read<std::uint16_t>();
  header.compressor = in.read<std::uint16_t>();
  header.round = in.read<std::uint64_t>();
  header.sender = in.read<std::int32_t>() & 0x7FFFFFFF;
  header.settings = in.read<std::uint32_t>();
  header.phase = in.read<std::uint16_t>();
  header.bucket = in.read<std::uint32_t>();
  header.elements = in.read<std::uint64_t>();
  const auto payload = in.take(in.remaining());
  header.payload_bytes = payload.size();
  std::vector<std::byte> frame(sotto::kFrameHeaderBytes + payload.size());
  std::ranges::copy(payload, frame.begin() + sotto::kFrameHeaderBytes);
  sotto::seal_frame(header, frame);
  const auto view = sotto::parse_frame(frame);
  check(view.ok(), "a sealed frame parses");
  check(view->header.round == header.round && view->header.elements == header.elements &&
            view->header.sender == header.sender,
        "a sealed frame keeps its header");
  check(std::ranges::equal(view->payload, payload), "a sealed frame keeps its payload");
}

void frame(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  if (in.read<std::uint8_t>() % 2 == 1) {
    seal_and_parse(in);
    return;
  }
  const auto rest = in.take(in.remaining());
  const std::vector<std::byte> bytes(rest.begin(), rest.end());
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{100}, ~std::size_t{0}}) {
    const auto announced = sotto::announced_frame_bytes(bytes, capacity);
    check(!announced.ok() || (*announced >= sotto::kFrameHeaderBytes && *announced <= capacity),
          "an announced length lies within the capacity");
  }
  const auto view = sotto::parse_frame(bytes);
  if (view.ok()) {
    std::vector<std::byte> again(bytes.size());
    std::ranges::copy(view->payload, again.begin() + sotto::kFrameHeaderBytes);
    sotto::seal_frame(view->header, again);
    check(again == bytes, "a frame that parses is the one that sealing makes");
  }
}

}  // namespace

std::unique_ptr<sotto::Compressor> make(std::string_view spec, std::size_t elements,
                                        sotto::ContractKind form) {
  return sotto::make_compressor(spec, form, sotto::host_ops(), tensors(elements));
}

namespace {

/// Every target but those of the families of compressors.
std::span<const Target> named_targets() {
  static constexpr Target kTargets[] = {
      {"graph", read_graph},
      {"topology", name_topology},
      {"node_grid", read_grid},
      {"rows", hear_rows},
      {"frame", frame},
      {"spec", parse_spec},
      {"encode", encode},
      {"site", site},
      {"roster_message", roster_message},
      {"store_entry", store_entry},
      {"site_message", site_message},
      {"site_state", site_state},
      {"key_file", read_key},
      {"peers_file", read_peers},
      {"site_list", read_site_list},
      {"algorithm", disturb_algorithm},
      {"algorithm_state", load_algorithm},
      {"section_file", read_section_file},
      {"audit", read_audit},
      {"run_state", read_run},
      {"privacy_ledger", read_ledger},
      {"csv", read_data},
      {"libsvm", read_data},
      {"text", read_data},
      {"idx", read_data},
      {"quadratic", read_data},
      {"ratings", read_data},
      {"parameters", read_data},
      {"model_file", read_model},
      {"meeting", meet_strangers},
#ifdef SOTTO_HAVE_ZMQ
      {"channel", hear_channel},
      {"wire", hear_transport},
      {"store", ask_store},
#endif
#ifdef SOTTO_FUZZ_PROGRAM
      {"config", read_config},
      {"site_config", read_config},
      {"fault_plan", read_config},
      {"scenario", read_config},
      {"column_sums", read_config},
      {"scaling", read_config},
      {"words", read_words},
#endif
  };
  return kTargets;
}

}  // namespace

std::span<const Target> targets() {
  static const std::vector<Target> all = [] {
    const auto named = named_targets();
    std::vector<Target> made(named.begin(), named.end());
    for (const sotto::CompressorInfo& info : sotto::compressors()) {
      made.push_back({info.name, decode});
    }
    return made;
  }();
  return all;
}

std::vector<std::string> specs_of(std::string_view family) {
  const auto found = std::ranges::find(families(), family, &Family::name);
  check(found != families().end(), "every family of compressors has specifications to fuzz");
  return found->specs;
}

}  // namespace sotto_fuzz
