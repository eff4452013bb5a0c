#include "files.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/digest.h>
#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/sites/nodes/report/audit_log.h>
#include <sotto/sites/nodes/state/site_state_file.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/data/ratings.h>
#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/files/model_file.h>
#include <sotto/trainers/files/parameter_file.h>
#include <sotto/trainers/files/privacy_ledger.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "../../trainers/data/loaders/idx.h"
#include "../../trainers/internal/reporting/standing_bytes.h"
#include "../../trainers/internal/run/run_state.h"
#include "memory_file.h"

namespace sotto_fuzz {
namespace {

using sotto::ByteReader;
using sotto::check;
using Bytes = std::vector<std::byte>;

/// Messages quote a little of a file, not all of it.
constexpr std::size_t kLongestMessage = 1000;

void put_sum(Bytes& file, std::size_t at, std::span<const std::byte> of) {
  const std::uint64_t sum = XXH3_64bits(of.data(), of.size());
  std::memcpy(file.data() + at, &sum, sizeof sum);
}

/// Puts checksums right, as who can write a file can.
void seal(Bytes& file) {
  constexpr std::size_t kHeader = 40;
  constexpr std::size_t kSection = 24;
  if (file.size() < kHeader) {
    return;
  }
  put_sum(file, kHeader - 8, std::span(file).first(kHeader - 8));
  for (std::size_t at = kHeader; file.size() - at >= kSection;) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at + 8, sizeof length);
    if (length > file.size() - at - kSection) {
      return;
    }
    put_sum(file, at + 16, std::span(file).subspan(at + kSection, length));
    at += kSection + length;
  }
}

void check_short(const sotto::Error& error) {
  check(std::string_view(error.what()).size() < kLongestMessage, "messages are short");
}

sotto::ParameterLayout model_layout() {
  sotto::ParameterLayout layout;
  sotto::append_block(layout, "w", {2, 3});
  sotto::append_block(layout, "b", {2});
  return layout;
}

sotto::PrivacyOptions promise(const std::string& ledger) {
  sotto::PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 1;
  options.ledger = ledger;
  return options;
}

}  // namespace

void read_section_file(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  const bool sealed = in.read<std::uint8_t>() % 2 == 1;
  const auto rest = in.take(in.remaining());
  Bytes file(rest.begin(), rest.end());
  if (sealed) {
    seal(file);
  }
  const MemoryFile on_disk(file);
  const std::array<const sotto::FileKind*, 2> kinds = {&sotto::checkpoint_kind(),
                                                       &sotto::site_state_kind()};
  const auto report = sotto::inspect_file(on_disk.path(), kinds);
  for (const auto* kind : kinds) {
    const auto parts = sotto::decode_sections(*kind, file);
    const bool whole = report.ok() && report->kind == kind && report->trouble.empty();
    check(parts.ok() == whole, "inspecting a file finds it whole where reading does");
    if (parts.ok()) {
      check(sotto::encode_sections(*kind, *parts) == file,
            "a file that is read is what is written");
    }
  }
  const auto checkpoint = sotto::decode_checkpoint(file);
  if (checkpoint.ok()) {
    check(sotto::encode_checkpoint(*checkpoint) == file, "a checkpoint that is read is written");
  }
  const auto state = sotto::decode_site_state(file);
  if (state.ok()) {
    check(sotto::encode_site_state(*state) == file, "a site's state that is read is written");
  }
}

void read_audit(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  const bool sealed = in.read<std::uint8_t>() % 2 == 1;
  const auto rest = in.take(in.remaining());
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  std::string file(sealed ? "" : text);
  std::string digest(64, '0');
  std::size_t lines = 0;
  for (std::size_t at = 0, end; sealed && (end = text.find('\n', at)) != std::string_view::npos;
       at = end + 1, ++lines) {
    const std::string record(text.substr(at, end - at));
    const std::string chained = digest + "\n" + record;
    digest = sotto::sha256_hex(std::as_bytes(std::span(chained)));
    file += fmt::format("{} {}\n", digest, record);
  }
  const MemoryFile on_disk(std::as_bytes(std::span(file)));
  const auto head = sotto::check_audit(on_disk.path());
  if (head.ok()) {
    check(!sealed || head->records == lines, "every line of a whole file is a record");
    check(!sealed || lines == 0 || head->digest == digest, "a file's digest is that of its end");
  } else {
    check(head.status().message().size() < kLongestMessage, "messages are short");
  }
}

std::vector<std::byte> example_audit() {
  constexpr std::string_view kLines =
      "\1{\"number\":1,\"time\":\"2026-11-26T00:00:00.000Z\",\"event\":\"audit-begins\","
      "\"site\":\"a\",\"previous\":"
      "\"0000000000000000000000000000000000000000000000000000000000000000\"}\n"
      "{\"number\":2,\"level\":\"info\",\"event\":\"peer-up\",\"peer\":\"b\",\"text\":\"\"}\n";
  const auto bytes = std::as_bytes(std::span(kLines));
  return {bytes.begin(), bytes.end()};
}

void read_run(std::string_view /*name*/, std::span<const std::byte> input) {
  const Bytes bytes(input.begin(), input.end());
  ByteReader in(bytes);
  const auto state = sotto::internal::read_run_state(in);
  if (state.ok()) {
    sotto::ByteBuffer again;
    sotto::internal::write_run_state(*state, again);
    check(again.bytes().size() == bytes.size(), "a history that is read is what is written");
  }
  const std::array<Bytes, 1> standings = {bytes};
  if (const auto nodes = sotto::internal::read_standings(standings); nodes.ok()) {
    sotto::RunResult result;
    sotto::internal::add_standings(*nodes, result);
  }
}

void read_ledger(std::string_view /*name*/, std::span<const std::byte> input) {
  std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  text += fmt::format("sha256={}\n", sotto::sha256_hex(std::as_bytes(std::span(text))));
  const MemoryFile file(std::as_bytes(std::span(text)));
  try {
    const sotto::PrivacyLedger ledger(promise(file.path()));
    check(ledger.existed(), "the ledger is there");
  } catch (const sotto::Error& error) {
    check_short(error);
  }
}

void read_model(std::string_view /*name*/, std::span<const std::byte> input) {
  const auto layout = model_layout();
  const auto model = sotto::decode_model_file(input, layout);
  if (model.ok()) {
    const auto again = sotto::encode_model_file(layout, *model, {});
    check(*sotto::decode_model_file(again, layout) == *model, "a model that is read is written");
  } else {
    check(model.status().message().size() < kLongestMessage, "messages are short");
  }
  const auto named = sotto::read_model_tensors(input);
  if (named.ok()) {
    const auto again = sotto::encode_model_file(named->layout, named->parameters, {});
    check(sotto::read_model_tensors(again)->parameters == named->parameters,
          "tensors that are read are written");
  } else {
    check(named.status().message().size() < kLongestMessage, "messages are short");
  }
}

void read_data(std::string_view name, std::span<const std::byte> input) {
  const MemoryFile file(input);
  try {
    if (name == "csv") {
      for (const bool regression : {true, false}) {
        try {
          (void)sotto::load_csv(file.path(), {.regression = regression, .skip_missing = true});
        } catch (const sotto::Error& error) {
          check_short(error);
        }
      }
    } else if (name == "libsvm") {
      (void)sotto::load_libsvm(file.path());
    } else if (name == "text") {
      (void)sotto::load_text(file.path());
    } else if (name == "idx") {
      const auto array = sotto::read_idx(file.path(), 3);
      check(array.size() == array.extents[0] * array.extents[1] * array.extents[2],
            "an array has as many values as its extents say");
    } else if (name == "quadratic") {
      (void)sotto::load_quadratic(file.path());
    } else if (name == "ratings") {
      const sotto::Ratings ratings = sotto::read_ratings(file.path());
      const auto split = sotto::split_ratings(ratings, {.members = 2});
      check(split.train.links.size() + split.test.size() == ratings.all.size(),
            "each rating is learnt or tested");
    } else {
      (void)sotto::read_parameter_row(file.path(), 3);
    }
  } catch (const sotto::Error& error) {
    check_short(error);
  }
}

std::vector<std::byte> example_model() {
  const std::vector<float> model = {1, -2, 0.5F, 4, 5, 6, 7, 8};
  return sotto::encode_model_file(model_layout(), model, {{"sotto", "example"}});
}

std::vector<std::byte> example_section_file(bool site) {
  sotto::ByteBuffer out;
  out.write(std::uint8_t{1});
  const Bytes part(40, std::byte{7});
  if (site) {
    out.append(sotto::encode_site_state(
        {.life = 3, .number = 2, .round = 9, .settings = "lr=0.1\n", .site = part, .run = part}));
  } else {
    out.append(sotto::encode_checkpoint({.rank = 1,
                                         .nodes = 4,
                                         .round = 9,
                                         .agreement = "lr=0.1\n",
                                         .optimizer = part,
                                         .run = part}));
  }
  return std::move(out).take();
}

std::vector<std::byte> example_run_state() {
  sotto::ByteBuffer out;
  sotto::internal::write_run_state({.wall_s = 1, .compute_s = 2, .history = {{}, {}}}, out);
  return std::move(out).take();
}

std::vector<std::byte> example_ledger() {
  char folder[] = "/tmp/fuzz-ledger-XXXXXX";
  check(::mkdtemp(folder) != nullptr, "a folder for the ledger");
  const std::string path = std::string(folder) + "/privacy";
  sotto::PrivacyLedger ledger(promise(path));
  check(ledger.enter(1, 100).ok(), "a step is entered");
  const auto bytes = sotto::read_file(path, 10'000);
  check(bytes.ok() && ::unlink(path.c_str()) == 0 && ::rmdir(folder) == 0, "the ledger is read");
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto kept = bytes->begin() + static_cast<std::ptrdiff_t>(text.rfind("sha256="));
  return {bytes->begin(), kept};
}

}  // namespace sotto_fuzz
