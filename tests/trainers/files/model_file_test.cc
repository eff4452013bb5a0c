// Tensors in fewer bits in a model's file (trainers/files/model_file.h).
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/trainers/files/model_file.h>

namespace sotto::test::model_file_test {

namespace {

constexpr std::uint64_t kSeed = 5150;

ParameterLayout layout_of(std::size_t rows) {
  ParameterLayout layout;
  append_block(layout, "w", {rows, 3});
  append_block(layout, "b", {5});
  return layout;
}

std::vector<float> drawn_model(std::size_t elements) {
  RandomStream drawn({.seed = kSeed});
  std::vector<float> model(elements);
  for (float& value : model) {
    value = static_cast<float>(drawn.normal());
  }
  return model;
}

std::string refusal_of(const std::string& header, std::size_t bytes) {
  ByteBuffer out;
  out.write(static_cast<std::uint64_t>(header.size()));
  out.write_span<char>(header);
  out.append(std::vector<std::byte>(bytes));
  const auto read = decode_model_file(out.bytes(), layout_of(2));
  CHECK(read.status().fault() == Fault::malformed);
  return read.status().message();
}

/// A header whose tensor w, of so many bytes, is encoded as this text of JSON says.
std::string header_with(const std::string& encodings, std::size_t bytes) {
  return fmt::format(R"({{"__metadata__":{{"sotto.encoding":"{}"}},)"
                     R"("w":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}},)"
                     R"("b":{{"dtype":"F32","shape":[5],"data_offsets":[{},{}]}}}})",
                     encodings, bytes, bytes, bytes, bytes + 20);
}

}  // namespace

TEST_CASE("encoded tensors come back as their compressor decodes them, all others bit for bit") {
  CAPTURE(kSeed);
  const ParameterLayout layout = layout_of(701);
  const auto model = drawn_model(dimension_of(layout));
  for (const std::string spec : {"quant:2,rounding=nearest", "quant:5,chunk=64,rounding=nearest",
                                 "quant:8", "outlier:4", "outlier:3,chunk=64", "fp16", "bf16"}) {
    CAPTURE(spec);
    const auto file = encode_model_file(layout, model, {{"a", "note"}}, {{"w", spec}});
    CHECK(file.size() < encode_model_file(layout, model, {{"a", "note"}}).size());
    const auto read = decode_model_file(file, layout);
    CAPTURE(read.status().message());
    REQUIRE(read.ok());
    std::vector<float> expected(2103);
    const auto encoding = encode_tensor(spec, std::span(model).first(2103));
    REQUIRE(
        make_compressor(spec, ContractKind::contraction)->decode_add(encoding, 1, expected).ok());
    CHECK(std::equal(expected.begin(), expected.end(), read->begin()));
    CHECK(std::equal(model.begin() + 2103, model.end(), read->begin() + 2103));
  }
}

TEST_CASE("tensors of a file without a layout are decoded too, and none by a shape that lies") {
  const ParameterLayout layout = layout_of(701);
  const auto model = drawn_model(dimension_of(layout));
  const auto file = encode_model_file(layout, model, {}, {{"w", "quant:8,rounding=nearest"}});
  const auto named = read_model_tensors(file);
  const auto read = decode_model_file(file, layout);
  REQUIRE(named.ok());
  CHECK(named->layout.size() == 2);
  for (const ParameterBlock& block : named->layout) {
    const auto& there = *std::ranges::find(layout, block.name, &ParameterBlock::name);
    CHECK(block.shape == there.shape);
    CHECK(std::ranges::equal(block.of(std::span<const float>(named->parameters)),
                             there.of(std::span<const float>(*read))));
  }
  for (const std::string shape : {"[1]", "[2,3]", "[1073741824]", "[0]", "[]"}) {
    CAPTURE(shape);
    const std::string encoding = R"({\"w\":{\"spec\":\"fp16\",\"shape\":)" + shape + "}}";
    const std::string header = header_with(encoding, 1000);
    ByteBuffer out;
    out.write(static_cast<std::uint64_t>(header.size()));
    out.write_span<char>(header);
    out.append(std::vector<std::byte>(1020));
    CHECK_FALSE(read_model_tensors(out.bytes()).ok());
  }
}

TEST_CASE("floats stand before encoded tensors, where they are aligned") {
  ParameterLayout layout;
  append_block(layout, "odd", {1031});
  append_block(layout, "b", {5});
  const auto model = drawn_model(dimension_of(layout));
  const auto file = encode_model_file(layout, model, {}, {{"odd", "quant:3,rounding=nearest"}});
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  CHECK(text.find(R"("data_offsets":[0,20])") != std::string::npos);
  const auto read = decode_model_file(file, layout);
  REQUIRE(read.ok());
  CHECK(std::equal(model.end() - 5, model.end(), read->end() - 5));
}

TEST_CASE("without encodings a file is what it was before there were any") {
  const ParameterLayout layout = layout_of(2);
  const auto model = drawn_model(dimension_of(layout));
  const auto file = encode_model_file(layout, model, {});
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  CHECK(text.find("sotto.encoding") == std::string::npos);
  CHECK(text.find("U8") == std::string::npos);
}

TEST_CASE("files of encoded tensors that are wrong are refused with the tensor's name") {
  const std::string good = R"({\"w\":{\"spec\":\"quant:8,rounding=nearest\",\"shape\":[2,3]}})";
  const std::string other = R"({\"w\":{\"spec\":\"topk:0.5\",\"shape\":[2,3]}})";
  const std::string mixed = R"({\"w\":{\"spec\":\"quant:8; b=sign\",\"shape\":[2,3]}})";
  const std::string absurd = R"({\"w\":{\"spec\":\"quant:99\",\"shape\":[2,3]}})";
  const std::string huge = R"({\"w\":{\"spec\":\"quant:8\",\"shape\":[4294967296,4294967296]}})";
  CHECK(refusal_of(header_with(good, 3), 23).find("tensor 'w'") != std::string::npos);
  CHECK(refusal_of(header_with(other, 3), 23).find("no known way") != std::string::npos);
  CHECK(refusal_of(header_with(mixed, 3), 23).find("no known way") != std::string::npos);
  CHECK(refusal_of(header_with(absurd, 3), 23).find("tensor 'w'") != std::string::npos);
  CHECK(refusal_of(header_with(huge, 3), 23).find("shape") != std::string::npos);
  CHECK(refusal_of(header_with("{", 3), 23).find("sotto.encoding") != std::string::npos);
  CHECK(refusal_of(header_with("[]", 3), 23).find("no JSON object") != std::string::npos);
  CHECK(refusal_of(header_with("{}", 3), 23).find("F32") != std::string::npos);
}

TEST_CASE("damaged encodings never decode to what is not finite, whatever bytes are changed") {
  const ParameterLayout layout = layout_of(40);
  const auto model = drawn_model(dimension_of(layout));
  const auto whole = encode_model_file(layout, model, {}, {{"w", "quant:4,rounding=nearest"}});
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 500; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    auto file = whole;
    file[8 + drawn.below(file.size() - 8)] ^= std::byte{1} << drawn.below(8);
    const auto read = decode_model_file(file, layout);
    if (read.ok()) {
      CHECK(host_ops().count_non_finite(*read).count == 0);
    }
  }
}

}  // namespace sotto::test::model_file_test
