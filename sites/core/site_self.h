// A site (site.h) as it was set up, and as it stands: what of it is durable, what it tells its
// peers, and whether it may go on.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <algorithm>
#include <cstdint>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/hello_verdict.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::sites {

/// What a site does next.
enum class RoundPhase : std::uint8_t {
  waiting,   ///< it has not begun
  training,  ///< it takes steps
  offered,   ///< it has made its parcels, and takes in others'
};

struct SiteSelf {
  SiteSetup setup = {};  ///< without step rule and compressor, which are the mixing's

  // Durable, and of the phase whether the site has begun.
  Incarnation incarnation = 0;
  Past past = {};
  Round round = 0;           ///< rounds that are over
  Round offered = 0;         ///< rounds, as announced
  bool trained = false;      ///< the site has trained, or taken a model over
  double minted = 0;         ///< as in SiteState
  double written_off = 0;    ///< as in SiteState
  std::uint64_t resets = 0;  ///< incarnations that were given up
  RoundPhase phase = RoundPhase::waiting;

  // What this process knows.
  Round planned = 1;      ///< H_i
  bool loaded = false;    ///< a state was loaded, and not given up
  bool outdated = false;  ///< the loaded state is too old
  Status alive = {};      ///< a fault: a newer process of the site runs

  /// The round in which the site is, as its peers may know; a newcomer has offered none in its
  /// first round.
  Round reached() const { return std::max(offered, round); }
  /// A fault, as one of this site in this round.
  Status here(const Status& status) const;

  /// Appends what is durable.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote. A round that was offered counts as ended.
  Status load(ByteReader& in);
};

}  // namespace sotto::sites
