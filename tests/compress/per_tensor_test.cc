// Rules by tensor: which compressor each tensor gets, and one payload out of many.
#include <sotto/compress/per_tensor.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "cases.h"

namespace sotto::test::per_tensor_test {

using namespace sotto_test;

namespace {

ParameterLayout network() {
  ParameterLayout layout;
  append_block(layout, "conv1.weight", {8, 3, 3, 3});
  append_block(layout, "conv1.bias", {8});
  append_block(layout, "empty", {0, 4});
  append_block(layout, "head.weight", {10, 40});
  append_block(layout, "head.bias", {10});
  append_block(layout, "temperature", {3});
  return layout;
}

std::unique_ptr<Compressor> make(std::string_view spec, ContractKind need = ContractKind::any) {
  return make_compressor(spec, need, host_ops(), network());
}

std::string error_of(std::string_view spec, const ParameterLayout& layout = network()) {
  try {
    make_compressor(spec, ContractKind::any, host_ops(), layout);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Which tensors come back exactly, by name.
std::string exact_tensors(std::string_view spec) {
  const auto compressor = make(spec);
  const auto layout = network();
  const auto x = gaussian(dimension_of(layout));
  const auto c = decoded(*compressor, encoded(*compressor, x, key_of(1)), x.size());
  std::string names;
  for (const ParameterBlock& tensor : layout) {
    if (tensor.size > 0 &&
        same_bits(tensor.of(std::span<const float>(x)), tensor.of(std::span<const float>(c)))) {
      names += tensor.name + ' ';
    }
  }
  return names;
}

constexpr const char* kSpecs[] = {"quant:4; 1d=none", "sign; head.*=topk:0.1; under:9=fp16",
                                  "none; *.weight=outlier:4,chunk=64",
                                  "randk:0.2; *=randk:0.5,scale=none"};

}  // namespace

TEST_CASE("the first rule that fits a tensor decides") {
  CHECK(exact_tensors("quant:4; 1d=none") == "conv1.bias head.bias temperature ");
  CHECK(exact_tensors("quant:4; *.bias=none") == "conv1.bias head.bias ");
  CHECK(exact_tensors("quant:4;under:10=none") == "conv1.bias temperature ");
  CHECK(exact_tensors("quant:4 ;head.*=none;  conv?.weight=none") ==
        "conv1.weight head.weight head.bias ");
  CHECK(exact_tensors("quant:4; head.bias=quant:8; *.bias=none") == "conv1.bias ");
  CHECK(exact_tensors("none; *=quant:4; 1d=none").empty());
}

TEST_CASE("specifications with rules are printed whole and build the same compressor") {
  const auto compressor =
      make(" quant:4 ;1d=none; head.*=quant:2,chunk=64", ContractKind::contraction);
  CHECK(compressor->spec() ==
        "quant:4,chunk=4096,rounding=nearest; 1d=none; head.*=quant:2,chunk=64,rounding=nearest");
  CHECK(make(compressor->spec())->spec() == compressor->spec());
  CHECK(compressor->clone()->spec() == compressor->spec());
  CHECK(compressor->wire_id() == kPerTensorWireId);
}

TEST_CASE("rules that are not understood, or fit nothing, are refused by name") {
  CHECK(error_of("quant:4; 1d").find("SELECTOR=SPEC") != std::string::npos);
  CHECK(error_of("quant:4; =none").find("'=none'") != std::string::npos);
  CHECK(error_of("quant:4; 1d=gzip").find("'gzip'") != std::string::npos);
  CHECK(error_of("quant:4; under:x=none").find("under:1024") != std::string::npos);
  CHECK(error_of("quant:4; *.gamma=none").find("conv1.weight, conv1.bias") != std::string::npos);
  CHECK_FALSE(error_of("quant:4;").empty());
  CHECK_FALSE(error_of("; 1d=none").empty());
  CHECK_FALSE(error_of("quant:4; a\nb=none").empty());
  const auto hidden = error_of("quant:4; conv*=none; under:4=fp16; conv1.b*=sign");
  CHECK(hidden.find("'conv1.b*'") != std::string::npos);
  CHECK(hidden.find("'conv*'") != std::string::npos);
  CHECK(error_of("quant:4; under:4096=none; head.b*=sign").empty());  // another model's is wider
  CHECK(error_of("quant:4; conv1.b*=sign; conv*=none").empty());
  // Without a layout, or with one tensor, there is nothing to tell apart.
  CHECK(error_of("quant:4; *.gamma=none", {}).empty());
  const auto alone =
      make_compressor("quant:4; x=none; 1d=none", ContractKind::any, host_ops(), one_tensor(100));
  CHECK(alone->max_bytes(100) == make_compressor("quant:4")->max_bytes(100));
}

TEST_CASE("vectors of other lengths take the default") {
  const auto compressor = make("quant:4; 1d=none");
  const auto plain = make_compressor("quant:4");
  for (const std::size_t n : kLengths) {
    CAPTURE(n);
    const auto x = gaussian(n);
    CHECK(encoded(*compressor, x, key_of(1)) == encoded(*plain, x, key_of(1)));
    CHECK(compressor->contract(n).alpha == plain->contract(n).alpha);
  }
}

TEST_CASE("the contract is the worst of the parts, and holds") {
  const std::size_t d = dimension_of(network());
  CHECK(make("none; 1d=none")->contract(d).meets(ContractKind::exact));
  CHECK(make("quant:8; 1d=none")->contract(d).meets(ContractKind::unbiased));
  CHECK_FALSE(make("quant:8; 1d=sign")->contract(d).meets(ContractKind::unbiased));
  CHECK(make("none; head.*=topk:0.1")->contract(d).delta == doctest::Approx(0.1));
  CHECK(make("sign; *=sign,scale=l2")->contract(d).delta == 0);
  for (const char* spec : kSpecs) {
    CAPTURE(spec);
    const auto compressor = make(spec, ContractKind::contraction);
    const Contract contract = compressor->contract(d);
    if (contract.delta == 0) {
      continue;
    }
    const auto x = gaussian(d);
    double error = 0;
    for (int i = 0; i < 50; ++i) {
      const auto bytes = encoded(*compressor, x, key_of(static_cast<Round>(i)));
      error += squared_distance(decoded(*compressor, bytes, d), x) / 50;
    }
    CHECK(error <= 1.1 * (1 - contract.delta) * squared_norm(x) + 1e-9);
  }
}

TEST_CASE("encoding tensors apart is deterministic, agrees with error feedback, and draws apart") {
  const std::size_t d = dimension_of(network());
  for (const char* spec : kSpecs) {
    CAPTURE(spec);
    const auto compressor = make(spec);
    const auto x = gaussian(d);
    const auto bytes = encoded(*compressor, x, key_of(1));
    CHECK(bytes.size() <= compressor->max_bytes(d));
    CHECK(encoded(*compressor->clone(), x, key_of(1)) == bytes);
    std::vector<float> expected = x;
    REQUIRE(compressor->decode_add(bytes, -1, expected).ok());
    std::vector<float> v = x;
    std::vector<std::byte> out(compressor->max_bytes(d));
    CHECK(compressor->encode_residual(v, key_of(1), out) == bytes.size());
    CHECK(same_bits(v, expected));
    std::vector<float> sum = x;
    REQUIRE(compressor->decode_add(bytes, 1, sum).ok());
    std::vector<float> model = x;
    const auto make = [&](std::size_t first, std::span<float> piece) {
      std::ranges::copy(std::span(model).subspan(first, piece.size()), piece.begin());
      return true;
    };
    CHECK(compressor->encode_prepared({.make = make, .add_to = model}, v, key_of(1), out) ==
          bytes.size());
    CHECK(same_bits(model, sum));
  }
  // Two tensors of equal values: their rounding errors must differ.
  ParameterLayout twins;
  append_block(twins, "a", {100});
  append_block(twins, "b", {100});
  const auto compressor =
      make_compressor("quant:2; b=quant:2", ContractKind::any, host_ops(), twins);
  auto x = gaussian(100);
  x.insert(x.end(), x.begin(), x.begin() + 100);
  const auto c = decoded(*compressor, encoded(*compressor, x, key_of(1)), 200);
  CHECK_FALSE(same_bits(std::span(c).first(100), std::span(c).last(100)));
}

TEST_CASE("truncated, longer and damaged payloads leave y untouched") {
  const std::size_t d = dimension_of(network());
  const auto start = uniform(d, 2);
  for (const char* spec : kSpecs) {
    CAPTURE(spec);
    const auto compressor = make(spec);
    const auto bytes = encoded(*compressor, gaussian(d), key_of(1));
    const auto outcome = [&](std::span<const std::byte> payload) {
      auto y = start;
      const Status status = compressor->decode_add(payload, 1, y);
      CHECK((status.ok() ? all_finite(y) : same_bits(y, start)));
      return status.fault();
    };
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CHECK(outcome(std::span(bytes).first(size)) == Fault::malformed);
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK(outcome(longer) == Fault::malformed);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 3) {
      auto damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      outcome(damaged);
    }
  }
  // The fault names the tensor.
  const auto compressor = make("none; *.bias=fp16");
  auto bytes = encoded(*compressor, gaussian(d), key_of(1));
  std::fill(bytes.end() - 4, bytes.end(), std::byte{0xFF});
  auto y = start;
  CHECK(compressor->decode_add(bytes, 1, y).message().find("temperature") != std::string::npos);
}

}  // namespace sotto::test::per_tensor_test
