// Writes the seed corpus, `make_corpus FOLDER`: valid inputs of every target, from which libFuzzer
// mutates. Run it after a change of a payload's layout, and commit what it writes.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/frame.h>
#include <sotto/compress/registry.h>
#include <sotto/topology/registry.h>

#include "harness.h"

namespace {

namespace fs = std::filesystem;

std::vector<float> example(std::size_t elements) {
  sotto::RandomStream normals({.seed = 1, .purpose = sotto::Purpose::test});
  std::vector<float> x(elements);
  for (float& value : x) {
    value = static_cast<float>(normals.normal());
  }
  return x;
}

void save(const fs::path& path, const sotto::ByteBuffer& buffer) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(buffer.bytes().data()),
            static_cast<std::streamsize>(buffer.bytes().size()));
}

void write_payloads(const fs::path& root, std::string_view family) {
  const auto specs = sotto_fuzz::specs_of(family);
  for (std::size_t variant = 0; variant < specs.size(); ++variant) {
    for (const std::uint16_t elements : {std::uint16_t{1}, std::uint16_t{150}}) {
      const auto compressor = sotto_fuzz::make(specs[variant], elements);
      std::vector<std::byte> payload(compressor->max_bytes(elements));
      payload.resize(compressor->encode(example(elements), {.seed = 1}, payload));
      sotto::ByteBuffer input;
      input.write(static_cast<std::uint8_t>(variant));
      input.write(elements);
      input.write(std::uint8_t{0});
      input.append(payload);
      save(root / family / fmt::format("variant{}_{}", variant, elements), input);
    }
  }
}

void write_frames(const fs::path& folder) {
  for (const std::size_t size : {0U, 40U}) {
    std::vector<std::byte> bytes(sotto::kFrameHeaderBytes + size, std::byte{7});
    sotto::seal_frame({.run_id = 5, .round = 9, .sender = 1, .payload_bytes = size}, bytes);
    sotto::ByteBuffer raw;
    raw.write(std::uint8_t{0});
    raw.append(bytes);
    save(folder / fmt::format("whole_{}", size), raw);
    sotto::ByteBuffer fields;
    fields.write(std::uint8_t{1});
    fields.append(bytes);
    save(folder / fmt::format("fields_{}", size), fields);
  }
}

void write_specs(const fs::path& folder) {
  for (const sotto::CompressorInfo& info : sotto::compressors()) {
    sotto::ByteBuffer text;
    const std::string spec = sotto::make_compressor(info.example)->spec();
    text.append(std::as_bytes(std::span(spec)));
    save(folder / info.name, text);
  }
}

void write_text(const fs::path& path, std::uint8_t nodes, std::string_view text) {
  sotto::ByteBuffer input;
  input.write(nodes);
  input.append(std::as_bytes(std::span(text)));
  save(path, input);
}

void write_graphs(const fs::path& root) {
  for (const sotto::TopologyInfo& info : sotto::topologies()) {
    write_text(root / "topology" / info.name, 8, info.example);
  }
  const fs::path folder = root / "graph";
  write_text(folder / "weighted", 0, "from,to,weight\n0,1,0.25\n1,0,0.25\n1,1,0.5\n2,1,1e-3\n");
  write_text(folder / "completed", 4, "from,to,weight\n0,3,0.333333333\n1,3,0.333333333\n");
  write_text(folder / "bare", 0,
             "\xEF\xBB\xBF"
             "to,from\r\n0,1\r\n\r\n 1 ,0\r\n");
}

void write_vectors(const fs::path& folder) {
  // The first specification of every family, in both forms.
  const auto variants = static_cast<std::uint8_t>(2 * sotto::compressors().size());
  for (std::uint8_t variant = 0; variant < variants; ++variant) {
    sotto::ByteBuffer input;
    input.write(variant);
    input.write_span(std::span<const float>(example(70)));
    input.write(3.4e38F);
    input.write(-3.4e38F);
    input.write(1e-44F);
    save(folder / fmt::format("variant{}", variant), input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  const fs::path root = argv[1];
  for (const sotto::CompressorInfo& info : sotto::compressors()) {
    write_payloads(root, info.name);
  }
  write_graphs(root);
  write_frames(root / "frame");
  write_specs(root / "spec");
  write_vectors(root / "encode");
  return 0;
}
