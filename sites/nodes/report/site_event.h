// What a site tells as it happens: an event, with its level, kind, text and figures. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// A figure of an event, under the name that the log gives it.
struct SiteFigure {
  std::string_view name;
  std::variant<std::uint64_t, double> value;
};

/// Something that an operator may want to know. Nothing in it is secret.
struct SiteEvent {
  /// How much it matters.
  enum class Level { info, warning, error };
  /// What has happened (docs/operations.md says what to do).
  enum class Kind : std::uint8_t {
    started,                ///< it begins: with a state, or as a new site
    listening,              ///< it takes connections at an address
    stopping,               ///< it was told to stop
    ended,                  ///< it has ended in good order
    joining,                ///< it waits for peers, or for a model
    joined,                 ///< it has a model
    round,                  ///< it goes on; told every ten seconds or so
    peer_up,                ///< the channel to a peer is open
    peer_down,              ///< … has closed
    peer_unreachable,       ///< a peer cannot be reached
    peer_refused,           ///< a peer, or this site, refuses the other
    key_refused,            ///< a key that is not listed was refused
    door_crowded,           ///< connections of strangers were turned away, or many came and went
    peer_restless,          ///< a peer connects again and again
    peer_contested,         ///< two processes show the key of one peer
    peer_offence,           ///< a peer has broken a rule of the protocol
    peer_given_up,          ///< parcels under way to a peer are written off
    send_only,              ///< peers that are sent to, and may not send
    peer_takes,             ///< a peer takes more mass than it gives
    peer_gives,             ///< a peer gives more mass than it takes
    peer_sends_nothing,     ///< a peer confirms, and sends nothing
    peer_confirms_nothing,  ///< a peer confirms nothing
    peer_mints,             ///< a peer's parcels hold more mass than they may
    peer_far_ahead,         ///< a peer says that it is many rounds ahead
    peer_stays_far,         ///< a peer's model stays farther away than a parcel may pull
    peer_late,              ///< a peer is not waited for any more
    model_put_back,         ///< the model before the last intake is back
    peer_spoils,            ///< a peer's parcels were in a model that was put back
    peer_barred,            ///< a peer's parcels do not count for a while
    loss_jump,              ///< the loss has jumped after an intake
    peers_file,             ///< the list has changed
    peers_refused,          ///< the list is malformed, and the one before stays
    key_ending,             ///< a key of a peer holds for two weeks at most
    trusts_nobody,          ///< nobody in the list may send or is sent to
    clock_behind,           ///< the clock is behind that of the last start
    setting,                ///< a setting does not do what it seems to
    exported,               ///< the model was written for other programs
    list_in_force,          ///< the list that is in force, for the audit file
    audit_cut,              ///< the audit file's last line was cut by a crash
    audit_failed,           ///< the audit file could not be written
    export_failed,          ///< the model could not be exported
    tensorboard_failed,     ///< the file for TensorBoard could not be written
    state_damaged,          ///< the newest state cannot be read
    state_given_up,         ///< the state was older than the peers' knowledge of it
    budget_spent,           ///< no gradient may leave any more
    node_came,              ///< a node takes part, for the first time or again
    node_left,              ///< … leaves, or has left
    node_lost,              ///< … does not answer any more
    node_conflict,          ///< two processes have one name
    other_settings,         ///< the run at a seed has other settings
    nodes_few,              ///< fewer nodes are up than MIN
    nodes_enough,           ///< MIN are up
    nobody_heard,           ///< no other node is heard, and whom it asks
    seeds_silent,           ///< seeds do not answer
    store_silent,           ///< the store of the seeds does not answer
    store_answers,          ///< … answers again
    store_refused,          ///< an entry in it is refused
    datagrams_refused,      ///< datagrams came that the run's key does not open
    epoch_began,            ///< all-reduce: an epoch with other members has begun
    put_out,                ///< … this node is no member any more, and joins anew
    node_unequal,           ///< … a node is put out, as its model or mean is not that of most
    run_waits,              ///< … no step is made: for want of a quorum, of nodes, for a newcomer
    run_goes_on,            ///< … steps are made again
    gradients_left_out,     ///< … gradients came after `grace`, and are in no mean
    run_given_up,           ///< … this node waits no more for a run that nobody is in
    state_not_saved,        ///< … the model could not be written to the folder
    other_run,              ///< … a node is in a run that was begun apart from this one
    undelivered,            ///< the node left with what no other has confirmed
    newer_process,          ///< the site ends, as a newer process with its key runs
    failed,                 ///< the site ends, and why
  };
  Level level = Level::info;
  Kind kind = Kind::setting;
  std::string text;
  std::string peer{};  ///< the peer concerned; empty: none
  std::optional<Round> round{};
  std::vector<SiteFigure> figures{};  ///< those of the text
};

/// Is told of events as they happen, on the site's thread.
using SiteListener = std::function<void(const SiteEvent&)>;

/// The listener; where there is none, one that does nothing.
SiteListener heard(SiteListener listener);

/// The name that logs give the kind: "peer-up".
std::string_view name_of(SiteEvent::Kind kind);

/// All kinds.
std::span<const SiteEvent::Kind> site_event_kinds();

}  // namespace sotto
