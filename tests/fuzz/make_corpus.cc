// Writes the seed corpus, `make_corpus FOLDER`: valid inputs of every target, from which libFuzzer
// mutates. Run it after a change of a payload's layout, and commit what it writes.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/frame.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/federated/message.h>
#include <sotto/topology/registry.h>

#ifdef SOTTO_HAVE_ZMQ
#include "../../comm/zmq/channel_wire.h"
#endif
#include "harness.h"
#include "sites.h"

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

#ifdef SOTTO_HAVE_ZMQ
void write_channels(const fs::path& folder) {
  namespace wire = sotto::internal::channel_wire;
  const std::vector<std::byte> bytes(200, std::byte{7});
  const auto conversation = [&](std::string_view name, std::span<const wire::Message> messages) {
    sotto::ByteBuffer input;
    for (const wire::Message& message : messages) {
      const auto written = wire::write(message);
      input.write(static_cast<std::uint16_t>(written.size()));
      input.append(written);
    }
    save(folder / name, input);
  };
  const std::vector<wire::Message> whole = {
      wire::Greeting{7},          wire::Accept{8},
      wire::Receipt{0, 20000},    wire::Chunk{0, 200, 0, bytes},
      wire::Receipt{4096, 20000}, wire::Bye{}};
  conversation("whole", whole);
  std::vector<wire::Message> parts;
  for (std::uint64_t number = 0; number < 6; ++number) {
    parts.push_back(wire::Chunk{number, 200, 0, std::span(bytes).first(120)});
    parts.push_back(wire::Receipt{0, 6000 * number});
    parts.push_back(wire::Chunk{number, 200, 120, std::span(bytes).first(80)});
  }
  conversation("parts", parts);
  const std::vector<wire::Message> empty(9, wire::Chunk{});
  conversation("empty", empty);
}
#endif

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

void write_file(const fs::path& path, std::string_view text) {
  sotto::ByteBuffer input;
  input.append(std::as_bytes(std::span(text)));
  save(path, input);
}

/// Keys that are nobody's.
void write_trust(const fs::path& root) {
  const std::string shown = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
  const std::string hidden = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
  const std::string other = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
  const auto key = fmt::format("public {}\nsecret {}\n", shown, hidden);
  write_file(root / "key_file" / "pair", "# sotto key of site\n" + key);
  write_file(root / "key_file" / "reversed", fmt::format("secret {}\n\npublic {}", hidden, shown));
  write_file(root / "key_file" / "twice", key + key);
  const fs::path folder = root / "peers_file";
  write_file(folder / "full",
             fmt::format("rank,name,key,address,may_send,send_to\n"
                         "0,hospital,{},10.0.0.1:9001,yes,no\n# a bank\n1,bank,{},[::1]:9,no,yes\n",
                         shown, other));
  write_file(folder / "brief", fmt::format("key,rank\r\n{},7\r\n", other));
  write_file(folder / "twice", fmt::format("rank,key\n0,{}\n0,{}\n", shown, other));
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

void write_messages(const fs::path& folder) {
  namespace federated = sotto::federated;
  const std::vector<std::byte> payload(20, std::byte{1});
  const auto write = [&](std::string_view name, const std::vector<std::byte>& message) {
    sotto::ByteBuffer out;
    out.append(message);
    save(folder / name, out);
  };
  write("hello", encode(federated::Hello{.incarnation = 1, .life = 1, .yours = 2, .next = 3}));
  write("refusal", encode(federated::Refusal{.text = "no"}));
  write("model", encode(federated::Model{
                     .incarnation = 1, .round = 2, .values = example(sotto_fuzz::kSiteDimension)}));
  write("parcel",
        encode(federated::Parcel{.incarnation = 1, .sequence = 2, .round = 3, .payload = payload}));
  write("receipt", encode(federated::Receipt{.incarnation = 1, .applied = 2, .round = 3}));
}

void add_command(sotto_fuzz::SiteCommand command, std::span<const std::byte> bytes,
                 sotto::ByteBuffer& out) {
  out.write(static_cast<std::uint8_t>(command));
  out.write(std::uint8_t{0});
  out.write(static_cast<std::uint16_t>(bytes.size()));
  out.append(bytes);
}

/// What the parcel of a peer holds: of push-sum quant:8, of gossip the whole copy.
sotto::ByteBuffer example_parcel(std::uint8_t exchange) {
  const auto model = example(sotto_fuzz::kSiteDimension);
  sotto::ByteBuffer payload;
  if (exchange % 2 == 1) {
    payload.write(std::uint64_t{1});
    payload.write(std::uint64_t{0});
    payload.write_span(std::span<const float>(model));
    return payload;
  }
  payload.write(0.25);
  payload.write(0.25);
  const auto compressor = sotto::make_compressor("quant:8", sotto::ContractKind::contraction);
  std::vector<std::byte> encoding(compressor->max_bytes(model.size()));
  encoding.resize(compressor->encode(model, {.seed = 1}, encoding));
  payload.append(encoding);
  return payload;
}

void write_sites(const fs::path& root) {
  using sotto_fuzz::SiteCommand;
  for (const std::uint8_t exchange : {std::uint8_t{0}, std::uint8_t{1}}) {
    sotto::ByteBuffer meeting;
    meeting.write(exchange);
    for (const SiteCommand command :
         {SiteCommand::toggle, SiteCommand::hello, SiteCommand::round}) {
      add_command(command, {}, meeting);
    }
    sotto::ByteBuffer rounds;
    rounds.append(meeting.bytes());
    save(root / "site" / fmt::format("meeting_{}", exchange), meeting);
    for (int k = 0; k < 3; ++k) {
      add_command(SiteCommand::parcel, example_parcel(exchange).bytes(), rounds);
      add_command(SiteCommand::receipt, {}, rounds);
      add_command(SiteCommand::round, {}, rounds);
    }
    for (const SiteCommand command :
         {SiteCommand::reload, SiteCommand::toggle, SiteCommand::hello, SiteCommand::round}) {
      add_command(command, {}, rounds);
    }
    save(root / "site" / fmt::format("rounds_{}", exchange), rounds);
    sotto::ByteBuffer state;
    state.append(sotto_fuzz::example_site_state(exchange));
    save(root / "site_state" / fmt::format("state_{}", exchange), state);
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
  write_trust(root);
  write_frames(root / "frame");
  write_specs(root / "spec");
  write_vectors(root / "encode");
  write_messages(root / "site_message");
  write_sites(root);
#ifdef SOTTO_HAVE_ZMQ
  write_channels(root / "channel");
#endif
  return 0;
}
