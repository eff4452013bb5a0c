#include <sotto/sites/nodes/stores/run_store.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/text.h>
#include <sotto/comm/trust/sealed_message.h>
#include <sotto/sites/roster/roster_entry.h>

namespace sotto {
namespace {

constexpr std::uint8_t kRunVersion = 1;
constexpr std::size_t kMostEndBytes = 64;
constexpr std::uint64_t kMarkOfAny = StoredEntries::kMarkOfAny;
/// Runs before the latest one that are looked for at once, so that none of them stays lost.
constexpr std::uint64_t kKeptAtOnce = 4;
/// Numbers that are missing in a row, after which a run is looked for.
constexpr std::uint64_t kMostLost = 4;
/// Ends of one run: each is later than the one before, or refused.
constexpr std::size_t kMostEnds = 64;

std::string run_key(std::uint64_t number) { return fmt::format("nodes/runs/{}", number); }
std::string end_key(std::uint64_t number, std::size_t place) {
  const std::string first = run_key(number) + "/end";
  return place == 0 ? first : fmt::format("{}/{}", first, place);
}

bool is_later(const RunEnd& end, const RunEnd& known) {
  return !known.all_left && (end.all_left || end.steps > known.steps);
}

std::vector<std::byte> encode(const StoredRun& run, const RunEnd& end) {
  ByteBuffer out;
  out.write(kRunVersion);
  out.write(run.number);
  out.write(run.id[0]);
  out.write(run.id[1]);
  write_end(end, out);
  return std::move(out).take();
}

}  // namespace

std::vector<std::byte> encode(const StoredRun& run) {
  ByteBuffer out;
  out.write(kRunVersion);
  out.write(run.number);
  out.write(run.id[0]);
  out.write(run.id[1]);
  out.write(run.step);
  out.write_string(run.name);
  out.write_string(run.address);
  return std::move(out).take();
}

Result<StoredRun> parse_stored_run(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto version = in.read<std::uint8_t>();
  StoredRun run{.number = in.read<std::uint64_t>()};
  run.id[0] = in.read<std::uint64_t>();
  run.id[1] = in.read<std::uint64_t>();
  run.step = in.read<Round>();
  run.name = in.read_string(sites::kMostRosterName);
  run.address = in.read_string(sites::kMostRosterAddress);
  const bool printable = one_line(run.name) == run.name && one_line(run.address) == run.address;
  if (!in.finished() || version != kRunVersion || run.name.empty() || !printable) {
    return Status(Fault::malformed, "it has not the form of a run");
  }
  return run;
}

RunStore::RunStore(StoredEntries& entries, const RunKey& key)
    : entries_(entries), key_(key.derived("sotto runs in a store")) {}

Result<std::optional<StoredRun>> RunStore::run_at(std::uint64_t number, Deadline deadline) {
  const std::string key = run_key(number);
  const auto entry = entries_.read(key, key_, kMostStoredRunBytes, deadline);
  if (!entry) {
    return entry.status();
  }
  if (entry->mark == 0) {
    return std::optional<StoredRun>();
  }
  if (entry->opened) {
    auto run = parse_stored_run(*entry->opened);
    if (run && run->number == number) {
      known_.insert_or_assign(number, *run);
      return std::optional(std::move(*run));
    }
    entries_.refuse(key, entry->mark,
                    run ? "it is the entry of another number" : run.status().message());
  }
  return std::optional(StoredRun{.number = number});
}

Status RunStore::restore(std::uint64_t number, Deadline deadline) {
  const auto there = run_at(number, deadline);
  if (!there || *there) {
    return there.status();
  }
  // One that was never read has the latest one's entry: what counts of it is that it was begun.
  const auto known = known_.find(number);
  StoredRun run = known != known_.end() ? known->second : *latest_;
  run.number = number;
  restored_ = true;
  return claim(run, deadline).status();
}

Status RunStore::keep(bool lost, Deadline deadline) {
  Status status;
  for (std::uint64_t number = 1; lost && status.ok() && number <= latest_->number; ++number) {
    status = restore(number, deadline);
  }
  const std::uint64_t before = latest_->number - 1;
  for (std::uint64_t k = 0; status.ok() && k < std::min(before, kKeptAtOnce); ++k) {
    kept_ = kept_ % before + 1;
    status = restore(kept_, deadline);
  }
  return status;
}

Result<std::optional<StoredRun>> RunStore::latest(Deadline deadline,
                                                  const std::optional<StoredRunId>& own) {
  if (latest_) {
    auto there = run_at(latest_->number, deadline);
    if (there && own == latest_->id) {
      if (Status status = keep(!*there, deadline); !status.ok()) {
        return status;
      }
      if (!*there) {
        there = run_at(latest_->number, deadline);
      }
    }
    if (!there) {
      return there.status();
    }
    latest_ = std::move(*there);
    walked_ = walked_ && latest_;
  }
  while (true) {
    const std::uint64_t next = latest_ ? latest_->number + 1 : 1;
    const std::uint64_t furthest = std::min(next + (walked_ ? 0 : kMostLost), kMostStoredRuns);
    std::optional<StoredRun> found;
    for (std::uint64_t number = next; number <= furthest && !found; ++number) {
      auto run = run_at(number, deadline);
      if (!run) {
        return run.status();
      }
      found = std::move(*run);
    }
    if (!found) {
      walked_ = latest_.has_value();
      return latest_;
    }
    latest_ = std::move(found);
  }
}

Result<StoredRun> RunStore::claim(const StoredRun& run, Deadline deadline) {
  if (run.number < 1 || run.number > kMostStoredRuns) {
    entries_.refuse(
        run_key(run.number), kMarkOfAny,
        fmt::format("the store has had {} runs: give another folder or prefix", kMostStoredRuns));
    return StoredRun{};
  }
  const auto there = entries_.store().claim(run_key(run.number), seal_message(encode(run), key_),
                                            kMostStoredRunBytes + kSealBytes, deadline);
  if (!there && there.status().fault() != Fault::malformed) {
    return there.status();
  }
  // What is there is read as any entry is, whoever put it.
  auto found = run_at(run.number, deadline);
  if (!found) {
    return found.status();
  }
  return *found ? std::move(**found)
                : Result<StoredRun>(Status(
                      Fault::io, fmt::format("'{}' has gone from the store", run_key(run.number))));
}

Result<RunStore::EndEntry> RunStore::end_at(const StoredRun& run, std::size_t place,
                                            Deadline deadline) {
  const std::string key = end_key(run.number, place);
  const auto entry = entries_.read(key, key_, kMostEndBytes, deadline);
  if (!entry) {
    return entry.status();
  }
  EndEntry found{.there = entry->mark != 0};
  if (!entry->opened) {
    return found;
  }
  ByteReader in(*entry->opened);
  const bool version = in.read<std::uint8_t>() == kRunVersion;
  const auto number = in.read<std::uint64_t>();
  const StoredRunId id = {in.read<std::uint64_t>(), in.read<std::uint64_t>()};
  const RunEnd end = read_end(in);
  if (!in.finished() || !version || number != run.number || id != run.id) {
    entries_.refuse(key, entry->mark, "it is no end of this run");
    return found;
  }
  found.known = end;
  return found;
}

Result<std::optional<RunEnd>> RunStore::end_of(const StoredRun& run, Deadline deadline) {
  std::optional<RunEnd> latest;
  for (std::size_t place = 0; place < kMostEnds; ++place) {
    const auto entry = end_at(run, place, deadline);
    if (!entry) {
      return entry.status();
    }
    if (!entry->there) {
      break;
    }
    if (entry->known && (!latest || is_later(*entry->known, *latest))) {
      latest = entry->known;
    }
  }
  return latest;
}

Status RunStore::note_end(const StoredRunId& id, const RunEnd& end, Deadline deadline) {
  const auto newest = latest(deadline);
  if (!newest) {
    return newest.status();
  }
  for (std::uint64_t number = *newest ? (*newest)->number : 0; number > 0; --number) {
    const auto run = run_at(number, deadline);
    if (!run) {
      return run.status();
    }
    if (*run && (*run)->id == id) {
      return add_end(**run, end, deadline);
    }
  }
  return {};
}

Status RunStore::add_end(const StoredRun& run, const RunEnd& end, Deadline deadline) {
  for (std::size_t place = 0; place < kMostEnds; ++place) {
    auto entry = end_at(run, place, deadline);
    if (entry && !entry->there) {
      const auto claimed =
          entries_.store().claim(end_key(run.number, place), seal_message(encode(run, end), key_),
                                 kMostEndBytes + kSealBytes, deadline);
      if (!claimed && claimed.status().fault() != Fault::malformed) {
        return claimed.status();
      }
      entry = end_at(run, place, deadline);  // this one's, or that of a node that was first
    }
    if (!entry) {
      return entry.status();
    }
    if (entry->known && !is_later(end, *entry->known)) {
      return {};
    }
  }
  entries_.refuse(end_key(run.number, kMostEnds), kMarkOfAny,
                  fmt::format("the run has {} ends already", kMostEnds));
  return {};
}

}  // namespace sotto
