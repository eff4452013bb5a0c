#include "configs.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/optim/schedule.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/rank_list.h>
#include <sotto/study/scenario/fault_file.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/data/partition.h>

#include "../../comm/internal/address/host_port.h"
#include "cli/fuzzed_files.h"
#include "memory_file.h"

namespace sotto_fuzz {
namespace {

using sotto::check;

/// A text in a file of its own.
class KeptText {
 public:
  explicit KeptText(std::string text)
      : text_(std::move(text)), file_(std::as_bytes(std::span(text_))) {}
  const std::string& text() const { return text_; }
  std::string path() const { return file_.path(); }

 private:
  std::string text_;
  MemoryFile file_;
};

void read(std::string_view name, const std::string& path) {
  if (name == "site_config") {
    sotto::test::read_as_site(path);
  } else if (name == "fault_plan") {
    const auto plan = sotto::study::read_fault_plan(path);
    check(plan.sites >= 1 && plan.window >= 1, "a plan has sites, and windows");
    for (const auto& fault : plan.faults) {
      check(std::ranges::all_of(fault.sites, [&](sotto::Rank site) { return site < plan.sites; }),
            "faults strike sites that there are");
    }
  } else if (name == "column_sums") {
    const auto sums = sotto::study::read_table_sums("combine", path);
    const KeptText again(sotto::study::table_sums_text(sums));
    check(sotto::study::table_sums_text(sotto::study::read_table_sums("again", again.path())) ==
              again.text(),
          "sums that are read are what is written");
    (void)sotto::combine_sums({&sums, 1});
  } else if (name == "scaling") {
    const auto scaling = sotto::study::read_scaling("scaling", path);
    const KeptText again(sotto::study::scaling_text(scaling));
    check(sotto::scaling_digest(sotto::study::read_scaling("again", again.path())) ==
              sotto::scaling_digest(scaling),
          "a scaling that is read is what is written");
  } else if (name == "config") {
    sotto::test::read_as_config(path);
  } else {
    const auto scenario = sotto::study::read_scenario(path);
    check(scenario.nodes >= 1, "a scenario has nodes");
    for (sotto::Rank to = 1; to < std::min(scenario.nodes, 8); ++to) {
      check(scenario.link_between(0, to).bytes_per_s > 0, "links carry something");
    }
  }
}

void parse(std::uint8_t kind, const std::string& text) {
  switch (kind % 9) {
    case 0:
      check(sotto::study::parse_duration(text) >= 0, "durations are not negative");
      return;
    case 1:
      check(sotto::study::parse_bandwidth(text) > 0, "bandwidths are positive");
      return;
    case 2:
      check(sotto::study::parse_ranks(text, 100).size() <= 100, "nodes are listed once");
      return;
    case 3:
      (void)sotto::study::parse_compute_time(text);
      return;
    case 4:
      (void)sotto::study::with_run({}, sotto::study::parse_run(text));
      return;
    case 5:
      (void)sotto::parse_schedule(text, 100);
      return;
    case 6:
      (void)sotto::parse_attack(text);
      return;
    case 7:
      (void)sotto::parse_partition(text);
      return;
    default:
      if (const auto place = sotto::internal::parse_host_port(text)) {
        check(place->port >= 1 && place->port <= 65535 && !place->host.empty(),
              "a place has a host and a port");
      }
  }
}

}  // namespace

void read_config(std::string_view name, std::span<const std::byte> input) {
  const MemoryFile file(input);
  try {
    read(name, file.path());
  } catch (const sotto::Error& error) {
    check(std::string_view(error.what()).size() < 10 * input.size() + 10'000,
          "messages are in proportion to the file");
  }
}

void read_words(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  const auto kind = in.read<std::uint8_t>();
  const auto rest = in.take(in.remaining());
  try {
    parse(kind, {reinterpret_cast<const char*>(rest.data()), rest.size()});
  } catch (const sotto::Error&) {
    return;
  }
}

}  // namespace sotto_fuzz
