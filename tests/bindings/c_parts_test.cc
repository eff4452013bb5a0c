// Lists, compressors and topologies through sotto.h, and what the library exports.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/topology/registry.h>

#include "bindings/c_node.h"
#include "support/skip.h"

namespace sotto::test::c_parts_test {

extern "C" int sotto_c_functions(void);

namespace {

constexpr std::size_t kElements = 1000;

CCompressor c_compressor(const char* spec) {
  sotto_compressor* made = nullptr;
  CHECK_MESSAGE(sotto_compressor_create(spec, nullptr, &made) == SOTTO_OK,
                std::string(sotto_last_error()));
  return CCompressor(made);
}

std::vector<float> normal_vector() {
  sotto::RandomStream random({.seed = 5});
  std::vector<float> x(kElements);
  std::generate(x.begin(), x.end(), [&] { return static_cast<float>(random.normal()); });
  return x;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) {
    text += piece.data();
  }
  ::pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("the library exports the functions of its header and nothing else") {
  const std::string symbols =
      output_of("nm -D --defined-only --no-demangle '" SOTTO_C_LIBRARY "' 2>&1");
  if (symbols.find("not found") != std::string::npos) {
    SOTTO_SKIP("nm is not installed");
  }
  int functions = 0;
  std::string line;
  for (const char c : symbols) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const std::string name = line.substr(line.rfind(' ') + 1);
    const bool node = name == "SOTTO_0" || name == "SOTTO_0@@SOTTO_0";  // of the version itself
    CHECK_MESSAGE((node || name.starts_with("sotto_")), line);
    functions += node ? 0 : 1;
    line.clear();
  }
  CHECK(functions == sotto_c_functions());
}

TEST_CASE("what there is to choose from is JSON with names") {
  for (const char* kind :
       {"algorithms", "rules", "compressors", "topologies", "transports", "settings"}) {
    CAPTURE(kind);
    char* text = nullptr;
    REQUIRE(sotto_list(kind, &text) == SOTTO_OK);
    const auto items = c_json(text);
    CHECK(items.size() > 2);
    for (const auto& item : items) {
      CHECK(item.at("name").get<std::string>().size() > 1);
    }
  }
  char* text = nullptr;
  CHECK(sotto_list("colours", &text) == SOTTO_REFUSED);
  CHECK(says("kind: 'colours' is refused: there are algorithms"));
  CHECK(says("models, settings"));
  CHECK(text == nullptr);
}

TEST_CASE("statuses have names, and every thread its own message") {
  CHECK(std::string(sotto_status_name(SOTTO_PEER_LOST)) == "peer_lost");
  for (int status = SOTTO_OK; status <= SOTTO_STOPPED; ++status) {
    CHECK(std::string(sotto_status_name(status)) != "unknown");
  }
  CHECK(std::string(sotto_status_name(99)) == "unknown");
  CHECK(std::string(sotto_version()) == SOTTO_VERSION);
  CHECK(sotto_optimizer_drain(nullptr) == SOTTO_REFUSED);
  const std::string here = sotto_last_error();
  std::thread([] { CHECK(std::string(sotto_last_error()).empty()); }).join();
  CHECK(here == sotto_last_error());
}

TEST_CASE("a compressor gives the bytes of the C++ one, and takes them back") {
  const auto x = normal_vector();
  for (const char* spec : {"quant:4", "sign", "topk:0.1", "randk:0.1", "fp16", "none"}) {
    CAPTURE(spec);
    const CCompressor codec = c_compressor(spec);
    std::size_t most = 0;
    REQUIRE(sotto_compressor_max_bytes(codec.get(), kElements, &most) == SOTTO_OK);
    std::vector<std::byte> bytes(most);
    std::size_t size = 0;
    REQUIRE(sotto_compressor_encode(codec.get(), x.data(), kElements, 3, 7, bytes.data(), most,
                                    &size) == SOTTO_OK);
    auto reference = sotto::make_compressor(spec);
    std::vector<std::byte> expected(reference->max_bytes(kElements));
    expected.resize(reference->encode(
        x, {.seed = 3, .rank = 0, .round = 7, .purpose = sotto::Purpose::quantize}, expected));
    bytes.resize(size);
    CHECK(bytes == expected);

    std::vector<float> y(kElements, 1);
    std::vector<float> z(kElements, 1);
    CHECK(sotto_compressor_decode_add(codec.get(), bytes.data(), size, 0.5F, y.data(), kElements) ==
          SOTTO_OK);
    CHECK(reference->decode_add(expected, 0.5F, z).ok());
    CHECK(y == z);
    CHECK(sotto_compressor_decode_add(codec.get(), bytes.data(), size - 1, 1, y.data(),
                                      kElements) == SOTTO_MALFORMED);
    CHECK(y == z);
    char* text = nullptr;
    REQUIRE(sotto_compressor_describe(codec.get(), kElements, &text) == SOTTO_OK);
    const auto described = c_json(text);
    CHECK(described.at("spec") == reference->spec());
    CHECK(described.at("max_bytes") == most);
  }
}

TEST_CASE("a compressor refuses what it cannot encode, and buffers that are too small") {
  const CCompressor codec = c_compressor("quant:8");
  auto x = normal_vector();
  std::vector<std::byte> bytes(4 * kElements);
  std::size_t size = 0;
  CHECK(sotto_compressor_encode(codec.get(), x.data(), kElements, 0, 0, bytes.data(), 10, &size) ==
        SOTTO_TOO_SMALL);
  CHECK(size > 10);
  x[3] = std::numeric_limits<float>::infinity();
  CHECK(sotto_compressor_encode(codec.get(), x.data(), kElements, 0, 0, bytes.data(), bytes.size(),
                                &size) == SOTTO_NON_FINITE);
  CHECK(says("x: 1 of 1000 values"));
  CHECK(sotto_compressor_max_bytes(codec.get(), std::size_t{1} << 62, &size) == SOTTO_REFUSED);
  sotto_compressor* made = nullptr;
  CHECK(sotto_compressor_create("quant:x", nullptr, &made) == SOTTO_REFUSED);
  CHECK(made == nullptr);
}

TEST_CASE("a topology gives its weights as a matrix") {
  sotto_topology* made = nullptr;
  for (const Words& words : {Words{"topology", "matching:4", "nodes", "8"},
                             Words{"topology", "torus:2x4", "lazy", "true"}}) {
    REQUIRE_MESSAGE(sotto_topology_create(as_settings(words).data(), &made) == SOTTO_OK,
                    std::string(sotto_last_error()));
    const CTopology topology(made);
    std::size_t nodes = 0;
    std::uint64_t period = 0;
    REQUIRE(sotto_topology_size(topology.get(), &nodes, &period) == SOTTO_OK);
    CHECK(nodes == 8);
    CHECK(period >= 1);
    std::vector<float> w(nodes * nodes);
    CHECK(sotto_topology_weights(topology.get(), 0, w.data(), w.size() - 1) == SOTTO_REFUSED);
    REQUIRE(sotto_topology_weights(topology.get(), 1, w.data(), w.size()) == SOTTO_OK);
    for (std::size_t i = 0; i < nodes; ++i) {
      double row = 0;
      for (std::size_t j = 0; j < nodes; ++j) {
        row += static_cast<double>(w[i * nodes + j]);
      }
      CHECK(row == 1);
      CHECK(w[i * nodes + i] > 0);
    }
  }
  const Words wrong = {"topology", "ring", "nodes", "8", "lr", "1"};
  CHECK(sotto_topology_create(as_settings(wrong).data(), &made) == SOTTO_REFUSED);
  CHECK(says("lr: a topology has"));
}

}  // namespace sotto::test::c_parts_test
