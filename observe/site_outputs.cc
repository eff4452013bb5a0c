#include <sotto/observe/site_outputs.h>

#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/unix_time.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/observe/metrics_text.h>
#include <sotto/observe/monitor.h>
#include <sotto/observe/site_metrics.h>
#include <sotto/observe/site_status.h>
#include <sotto/observe/tensorboard.h>
#include <sotto/sites/nodes/report/audit_log.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;

/// "3 sites, SHA-256 …: bank (abcdefgh…, both ways), lab (…, it sends)", the digest being of all
/// that the list says.
std::string list_text(const std::vector<TrustedPeer>& peers) {
  constexpr std::size_t kShownOfKey = 8;
  std::string shown;
  std::string all;
  for (const TrustedPeer& peer : peers) {
    const char* way = peer.may_send && peer.send_to ? "both ways"
                      : peer.may_send               ? "it sends"
                      : peer.send_to                ? "it is sent to"
                                                    : "neither way";
    std::string keys;
    for (const PeerKey& one : peer.keys()) {
      const std::string key = one.key.text();
      keys += fmt::format("{}{}…", keys.empty() ? "" : " and ", key.substr(0, kShownOfKey));
      all += fmt::format("{},{},{},{}\n", peer.name, key, peer.address, way);
    }
    shown += fmt::format("{}{} ({}, {})", shown.empty() ? "" : ", ", peer.name, keys, way);
  }
  return fmt::format("{} sites, SHA-256 {}: {}", peers.size(),
                     sha256_hex(std::as_bytes(std::span(all))), shown);
}

/// The pages of a monitor; the board outlives it.
std::vector<MonitorPage> site_pages(const SiteBoard& board) {
  return {{"/metrics", kMetricsType, [&board] { return site_metrics(board.get(), unix_time()); }},
          {"/status", "application/json",
           [&board] { return json_text(site_status_json(board.get()), 2) + "\n"; }}};
}

}  // namespace

struct SiteOutputs::Parts {
  Parts(SiteOutputOptions options, SiteListener next, const Spelling* spelling)
      : options_(std::move(options)),
        next_(std::move(next)),
        spelling_(spelling == nullptr ? own_names_ : *spelling) {
    if (!options_.monitor.empty()) {
      address_ = parse_monitor_address(options_.monitor);
    }
  }

  /// What a site and a node of one model have alike.
  template <typename Options>
  void attach(Options& options) {
    if (!options_.tensorboard.empty()) {
      options.observer =
          &tensorboard_.emplace(options_.tensorboard, [this](const SettingText& text) {
            tell({Level::warning, SiteEvent::Kind::tensorboard_failed, text.text(spelling_)});
          });
    }
    SiteReport first;
    first.name = options.name;
    board_.put(first);
    options.board = &board_;
    if (address_) {
      serve_pages();
    }
  }

  void attach_audit(SiteOptions& options) {
    options.audit = &audit_.emplace(options_.audit, options.name);
  }

  /// Throws Error where an audit file is wanted, which a run without a list of peers does not have.
  void refuse_audit() const {
    if (!options_.audit.empty()) {
      refuse("audit", options_.audit,
             "a run whose nodes come and go has no list of peers; leave it out");
    }
  }

  /// Begins with the list in force, once all outputs are there.
  void note_list_of(const SiteOptions& options) {
    list_ = options.security.peers;
    note_list();
  }

  /// An event of the site; after one of its list the audit file has that as it is now.
  void heard(const SiteEvent& event) {
    tell(event);
    if (event.kind == SiteEvent::Kind::peers_file) {
      note_list();
    }
  }

  const SiteOutputOptions& options() const { return options_; }

 private:
  void tell(const SiteEvent& event) {
    if (next_) {
      next_(event);
    }
    record(event);
  }

  void serve_pages() {
    try {
      monitor_.emplace(*address_, site_pages(board_));
    } catch (const std::exception& taken) {
      throw Shortage("monitor", taken.what());
    }
  }

  /// Into the audit file alone.
  void record(const SiteEvent& event) {
    if (!audit_ || !AuditLog::concerns(event)) {
      return;
    }
    const std::string trouble = audit_->record(event).message();
    const std::lock_guard lock(mutex_);
    if (std::exchange(trouble_, trouble) != trouble && !trouble.empty() && next_) {
      next_({Level::error, SiteEvent::Kind::audit_failed, trouble});
    }
  }

  void note_list() {
    if (list_) {
      record({Level::info, SiteEvent::Kind::list_in_force, list_text(list_->peers())});
    }
  }

  const SiteOutputOptions options_;
  const SiteListener next_;
  const Spelling own_names_;
  const Spelling& spelling_;
  std::optional<MonitorAddress> address_;
  std::shared_ptr<AllowList> list_;  ///< null: there is none
  std::optional<AuditLog> audit_;
  std::mutex mutex_;
  std::string trouble_;  ///< of the audit file
  std::optional<TensorBoard> tensorboard_;
  SiteBoard board_;
  std::optional<Monitor> monitor_;  ///< last: it reads the board
};

SiteOutputs::SiteOutputs(SiteOutputOptions options, SiteListener next, const Spelling* spelling)
    : parts_(std::make_unique<Parts>(std::move(options), std::move(next), spelling)) {}

SiteOutputs::~SiteOutputs() = default;

void SiteOutputs::attach(SiteOptions& options) {
  if (options.roster) {
    parts_->refuse_audit();
  } else if (!parts_->options().audit.empty()) {
    parts_->attach_audit(options);
  }
  parts_->attach(options);
  parts_->note_list_of(options);
}

void SiteOutputs::attach(ElasticOptions& options) {
  parts_->refuse_audit();
  parts_->attach(options);
}

SiteListener SiteOutputs::listener() {
  return [parts = parts_.get()](const SiteEvent& event) { parts->heard(event); };
}

}  // namespace sotto
