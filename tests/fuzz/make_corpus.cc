// Writes the seed corpus, `make_corpus FOLDER`: valid inputs of every target, from which libFuzzer
// mutates. Run it after a change of a payload's layout, and commit what it writes.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/frame.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/nodes/stores/run_store.h>
#include <sotto/sites/roster/roster_message.h>
#include <sotto/sites/roster/seed_leases.h>
#include <sotto/topology/registry.h>

#ifdef SOTTO_HAVE_ZMQ
#include "../../comm/zmq/channels/channel_wire.h"
#include "../../comm/zmq/store/tcp_store_wire.h"
#include "../../comm/zmq/transport/wire.h"
#endif
#include "algorithms.h"
#include "files.h"
#include "groups.h"
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
      wire::Receipt{0, 20000},    wire::Chunk{0, {200, 0, bytes}},
      wire::Receipt{4096, 20000}, wire::Bye{}};
  conversation("whole", whole);
  std::vector<wire::Message> parts;
  for (std::uint64_t number = 0; number < 6; ++number) {
    parts.push_back(wire::Chunk{number, {200, 0, std::span(bytes).first(120)}});
    parts.push_back(wire::Receipt{0, 6000 * number});
    parts.push_back(wire::Chunk{number, {200, 120, std::span(bytes).first(80)}});
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
  sotto::ByteBuffer composed;
  const std::string spec = sotto::make_compressor("randk:0.1/topk:0.2,values=4")->spec();
  composed.append(std::as_bytes(std::span(spec)));
  save(folder / "composed", composed);
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
  using std::string_view_literals::operator""sv;
  constexpr std::string_view kSiteList =
      "name,address,observer\nhospital,10.0.0.1:9001,no\nbank,,yes\nlab,[::1]:9002,\n\0"
      "from,to\nhospital,bank\nlab,hospital\nhospital,lab\n"sv;
  write_file(root / "site_list" / "sites", kSiteList.substr(0, kSiteList.find('\0')));
  write_file(root / "site_list" / "sites_and_edges", kSiteList);
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
  namespace sites = sotto::sites;
  const std::vector<std::byte> payload(20, std::byte{1});
  const auto write = [&](std::string_view name, const std::vector<std::byte>& message) {
    sotto::ByteBuffer out;
    out.append(message);
    save(folder / name, out);
  };
  write("hello", encode(sites::Hello{.incarnation = 1, .life = 1, .yours = 2, .next = 3}));
  write("refusal", encode(sites::Refusal{.text = "no"}));
  write("model", encode(sites::Model{
                     .incarnation = 1, .round = 2, .values = example(sotto_fuzz::kSiteDimension)}));
  write("parcel",
        encode(sites::Parcel{.incarnation = 1, .sequence = 2, .round = 3, .payload = payload}));
  write("receipt", encode(sites::Receipt{.incarnation = 1, .applied = 2, .round = 3}));
}

void write_roster_messages(const fs::path& folder) {
  namespace sites = sotto::sites;
  const auto write = [&](std::string_view name, const std::vector<std::byte>& message) {
    sotto::ByteBuffer out;
    out.append(message);
    save(folder / name, out);
  };
  const sites::RosterEntry entry{.name = "a",
                                 .incarnation = 1,
                                 .life = 2,
                                 .version = 3,
                                 .address = "10.0.0.2:2",
                                 .replaces = {4, 5}};
  const sites::RosterEntry namesake{.name = "own", .incarnation = 1, .address = "10.0.0.3:3"};
  write("probe", encode(sites::RosterProbe{.nonce = 1, .wishes = true, .entry = entry}));
  write("answer", encode(sites::RosterProbe{.answers = true, .nonce = 1, .forgot = true}));
  write("marks", encode(sites::RosterMarks{.wants_yours = true,
                                           .last = ~std::uint64_t{0},
                                           .marks = {{.key = 1, .life = 1, .version = 1}}}));
  write("other", encode(sites::RosterOther{.run = 1, .nonce = 1, .up = 2, .settings = {1, 2}}));
  const std::vector<sites::RosterEntry> entries = {entry, namesake};
  write("entries", sites::encode_entries(0, entries).front());
}

void write_store_entries(const fs::path& folder) {
  sotto::ByteBuffer lease;
  lease.append(encode(
      sotto::sites::SeedLease{.name = "a", .incarnation = 1, .address = "10.0.0.2:2", .count = 3}));
  save(folder / "lease", lease);
  sotto::ByteBuffer run;
  run.append(encode(sotto::StoredRun{
      .number = 1, .id = {2, 3}, .name = "a", .address = "10.0.0.2:2", .step = 4}));
  save(folder / "run", run);
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

void add_message(std::span<const std::byte> bytes, sotto::ByteBuffer& out) {
  out.write(static_cast<std::uint16_t>(bytes.size()));
  out.append(bytes);
}

/// What is done to the frames of a job: one change again and again, and one of each.
void write_algorithms(const fs::path& root) {
  const auto change = [](std::uint8_t kind, sotto::ByteBuffer& out) {
    out.write(kind);
    if (kind == 1 || kind == 6) {
      out.write(std::uint16_t{9});
    }
    if (kind == 1 || kind == 4) {
      out.write(std::uint8_t{4});
      out.write(kind == 1 ? std::uint32_t{0x7F800000} : std::uint32_t{0});
    } else if (kind == 2) {
      out.write(std::uint16_t{1});
    } else if (kind == 3) {
      out.write(std::uint16_t{1});
    } else if (kind == 5) {
      out.write(std::uint8_t{3});
      out.write(std::uint64_t{1});
    } else if (kind == 6) {
      out.write(std::uint8_t{1});
    }
  };
  for (std::size_t choice = 0; choice < sotto_fuzz::algorithm_choices(); ++choice) {
    sotto::ByteBuffer one;
    one.write(static_cast<std::uint8_t>(choice));
    for (int k = 0; k < 8; ++k) {
      change(static_cast<std::uint8_t>((choice + static_cast<std::size_t>(k)) % 7), one);
    }
    save(root / "algorithm" / fmt::format("choice_{}", choice), one);
    sotto::ByteBuffer state;
    state.append(sotto_fuzz::example_algorithm_state(static_cast<std::uint8_t>(choice)));
    save(root / "algorithm_state" / fmt::format("whole_{}", choice), state);
    sotto::ByteBuffer changes;
    changes.write(static_cast<std::uint8_t>(choice));
    changes.write(std::uint16_t{20});
    changes.write(std::uint8_t{4});
    changes.write(std::uint32_t{0x3F000000});
    save(root / "algorithm_state" / fmt::format("changed_{}", choice), changes);
  }
}

void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  sotto::ByteBuffer out;
  out.append(bytes);
  save(path, out);
}

void write_data(const fs::path& root) {
  for (const bool site : {false, true}) {
    write_bytes(root / "section_file" / (site ? "site" : "checkpoint"),
                sotto_fuzz::example_section_file(site));
  }
  write_bytes(root / "audit" / "two_records", sotto_fuzz::example_audit());
  write_bytes(root / "run_state" / "history", sotto_fuzz::example_run_state());
  write_bytes(root / "privacy_ledger" / "ledger", sotto_fuzz::example_ledger());
  write_file(root / "csv" / "table", "a,\"b\",class\n1,2.5,0\n-3e2,4,1\n5,6,0\n7,8,1\n0,1,0\n");
  write_file(root / "libsvm" / "rows", "1 1:0.5 3:-2\n-1 2:1e3\n1 3:4 # note\n-1 1:1\n1 2:2\n");
  write_file(root / "text" / "text", "to see the world in a grain of sand, and heaven in a flower");
  write_file(root / "idx" / "cube",
             std::string("\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02wxyz", 20));
  write_file(root / "quadratic" / "problem",
             R"({"start": [1, 2], "nodes": [{"h": [1, 0.5], "c": [3e0, -4]}]})");
  write_file(root / "ratings" / "ratings",
             "source,target,rating,time\n7,1,10,1407470400\n1,7,-2.5\n1,1,3\n");
  write_bytes(root / "model_file" / "tensors", sotto_fuzz::example_model());
  write_file(root / "parameters" / "row", "1.5, -2e-3,+7\r\n");
}

#ifdef SOTTO_HAVE_ZMQ
std::span<const std::byte> view(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

void write_transports(const fs::path& root) {
  namespace wire = sotto::internal::zmq_wire;
  namespace store = sotto::internal::store_wire;
  sotto::ByteBuffer frames;
  const std::vector<std::byte> frame(100, std::byte{7});
  for (sotto::Round round = 0; round < 4; ++round) {
    const auto piece = sotto::internal::piece_at(frame, 0, wire::kChunkBytes);
    add_message(view(wire::make_chunk({{.round = round}, piece})), frames);
    add_message(view(wire::make_credit(1)), frames);
  }
  add_message(view(wire::make_hello({.run_id = 7, .from = 1, .to = 0})), frames);
  add_message(view(wire::make_bye()), frames);
  save(root / "wire" / "frames", frames);

  sotto::ByteBuffer asked;
  const auto ask = [&](std::uint8_t line, const store::Request& request) {
    asked.write(line);
    add_message(view(store::make_request(request)), asked);
  };
  ask(0, {.kind = store::Kind::set,
          .key = "m/1",
          .piece = {.total = 200, .offset = 0, .bytes = frame}});
  ask(0, {.kind = store::Kind::set,
          .key = "m/1",
          .piece = {.total = 200, .offset = 100, .bytes = frame}});
  ask(0, {.kind = store::Kind::get, .key = "m/1", .wait_ms = 5});
  ask(1, {.kind = store::Kind::get, .key = "m/1-2"});
  ask(0, {.kind = store::Kind::remove, .key = "m/1"});
  save(root / "store" / "requests", asked);
}
#endif

void write_meetings(const fs::path& folder) {
  for (const std::uint8_t who : {std::uint8_t{0}, std::uint8_t{1}}) {
    sotto::ByteBuffer values;
    values.write(who);
    for (std::uint64_t k = 1; k < 12; ++k) {
      if (k % 3 == 0) {
        values.write(std::uint16_t{0xFFFF});  // what was set is named back
      } else {
        values.write(std::uint16_t{20});
        values.write(k);
        values.write_span(std::span<const float>(std::array<float, 3>{1, 2, 3}));
      }
    }
    save(folder / fmt::format("node_{}", who), values);
  }
}

#ifdef SOTTO_FUZZ_PROGRAM
void write_configs(const fs::path& root, const fs::path& examples) {
  for (const auto& [target, folder] :
       {std::pair{"fault_plan", "faults"}, std::pair{"scenario", "scenarios"}}) {
    fs::create_directories(root / target);
    for (const auto& example : fs::directory_iterator(examples / folder)) {
      if (example.path().extension() == ".toml") {
        fs::copy_file(example.path(), root / target / example.path().stem(),
                      fs::copy_options::overwrite_existing);
      }
    }
  }
  write_file(root / "site_config" / "whole",
             "sotto-site = 1\nname = \"a\"\nkey = \"a.key\"\npeers = \"peers.csv\"\n"
             "state = \"state\"\nlisten = \"[::1]:9001\"\nmonitor = \"127.0.0.1:9100\"\n"
             "[training]\ntask = \"csv:data.csv\"\nmodel = \"mlp:64\"\nalgorithm = \"robust\"\n"
             "compressor = \"quant:8\"\nrule = \"clipped:auto\"\nlr = 0.1\nrounds = 0\n"
             "part = \"3/8\"\nnesterov = true\nseed = 7\n[network]\ntimeout = \"10 s\"\n"
             "patience = \"30 s\"\nfound-after = \"1 min\"\nslack = 1\nwindow = 4\n");
  write_file(root / "column_sums" / "noised",
             "sotto-column-sums = 1\nrows = 812.25\n[privacy]\nnoise-multiplier = 4.1\n"
             "epsilon = 1\ndelta = 1e-05\n[[column]]\nname = \"age\"\nrole = \"feature\"\n"
             "least = 0\nlargest = 120\nsum = -12.5\nsquares = 301.75\n[[column]]\n"
             "name = \"price\"\nrole = \"target\"\nleast = 0\nlargest = 2e6\nsum = 1\n"
             "squares = 2\n");
  write_file(root / "scaling" / "two_sites",
             "sotto-scaling = 1\n[[site]]\nsums = \"ab\"\nnoise-multiplier = 4.1\n[[site]]\n"
             "sums = \"cd\"\nnoise-multiplier = 0\n[[column]]\nname = \"age\"\n"
             "role = \"feature\"\nmean = 54.1\ndeviation = 17.9\n[[column]]\n"
             "name = \"price\"\nrole = \"target\"\nmean = 1e5\ndeviation = 1e4\n");
  write_file(root / "config" / "train",
             "task = \"digits\"\nnodes = 4\nalgorithm = \"dcd\"\ncompressor = \"quant:8\"\n"
             "lr = 0.1\nmomentum = 0.9\nnesterov = true\nbatch = 32\neval-every = 5\n"
             "weight_decay = 1e-4\nschedule = \"cosine\"\nseed = 7\n");
  write_file(
      root / "site_config" / "least",
      "sotto-site = 1\nname = \"a\"\nkey = \"k\"\npeers = \"p\"\nstate = \"s\"\n[training]\n");
  std::uint8_t kind = 0;
  for (const std::string_view words :
       {"1.5 s", "100 Mbit/s", "0-3, 7", "lognormal:20 ms,0.5", "dcd quant:8 torus:2x4 lr=0.05",
        "step:30,0.1", "alie:1.5", "dirichlet:0.5", "[::1]:9000"}) {
    write_text(root / "words" / fmt::format("kind_{}", kind), kind, words);
    ++kind;
  }
}
#endif

}  // namespace

/// Grids, and payloads of rows that are right, cut, and beyond their room.
void write_groups(const fs::path& root) {
  int number = 0;
  for (const std::string_view grid : {"a=2,b=4", "data=8", "a=2,a=4", "a=,b", "x=1,y=1,z=8"}) {
    sotto::ByteBuffer input;
    input.write(std::uint8_t{8});
    input.append(std::as_bytes(std::span(grid)));
    save(root / "node_grid" / fmt::format("grid_{}", number++), input);
  }
  for (std::uint8_t kind = 0; kind < sotto_fuzz::kRowKinds; ++kind) {
    const auto right = sotto_fuzz::example_rows(kind);
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, right.size()}) {
      sotto::ByteBuffer input;
      input.write(kind);
      input.write(std::uint16_t{6});
      input.append(std::span(right).first(right.size() - cut));
      save(root / "rows" / fmt::format("kind_{}_without_{}", kind, cut), input);
    }
    sotto::ByteBuffer beyond;
    beyond.write(kind);
    beyond.write(std::uint16_t{0xFFFF});
    for (int k = 0; k < 40; ++k) {
      beyond.write(std::uint16_t{0xFFFF});
    }
    save(root / "rows" / fmt::format("kind_{}_beyond", kind), beyond);
  }
}

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
  write_groups(root);
  write_trust(root);
  write_frames(root / "frame");
  write_specs(root / "spec");
  write_vectors(root / "encode");
  write_messages(root / "site_message");
  write_roster_messages(root / "roster_message");
  write_store_entries(root / "store_entry");
  write_sites(root);
#ifdef SOTTO_HAVE_ZMQ
  write_channels(root / "channel");
  write_transports(root);
#endif
  write_algorithms(root);
  write_data(root);
  write_meetings(root / "meeting");
#ifdef SOTTO_FUZZ_PROGRAM
  write_configs(root, SOTTO_EXAMPLES);
#endif
  return 0;
}
