#include "durable_site.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

#include <sotto/sites/faults/mass_accounts.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/site_of_options.h>

#include "site_name.h"

namespace sotto::sitelab {
namespace {

/// The identity of a stream from one incarnation to another: equal at both ends, and that of no
/// other stream.
StreamId stream_of(sites::Incarnation from, sites::Incarnation to) {
  return std::max<StreamId>(from ^ std::rotl(to, 32), 1);
}

MassAccount account_of(const DurableSite& site, int sites) {
  MassAccount account;
  account.incarnation = site.state.incarnation;
  account.mass = site.state.mass;
  account.minted = site.state.minted;
  account.returned = site.state.raised - site.state.lowered;
  account.peers.resize(static_cast<std::size_t>(sites));
  for (std::size_t k = 0; k < site.listed.size(); ++k) {
    const sites::PeerState& peer = site.peers[k];
    PeerAccount& with = account.peers[static_cast<std::size_t>(site.listed[k])];
    with.to = peer.incarnation;
    with.stream = stream_of(account.incarnation, peer.incarnation);
    with.made = peer.given;
    with.heard = stream_of(peer.incarnation, account.incarnation);
    with.applied = peer.taken;
  }
  return account;
}

}  // namespace

Result<std::optional<DurableSite>> read_durable(const FaultPlan& plan, const SiteFiles& files,
                                                Rank site) {
  const auto found = read_site_state(files.state());
  if (!found.ok()) {
    return found.status();
  }
  if (!found->has_value()) {
    return std::optional<DurableSite>();
  }
  const SiteStateFile& file = (*found)->state;
  const auto task = make_site_task(plan);
  std::vector<float> parameters(task->dimension());
  sites::SiteSetup setup = site_setup(files.options(plan), task->layout(), parameters);
  setup.incarnation = 1;  // replaced by the state's
  const auto node = std::make_unique<sites::Site>(std::move(setup));
  ByteReader in(file.site);
  if (Status status = node->load(in); !status.ok()) {
    return status;
  }
  DurableSite durable = {.site = site,
                         .state = node->state(),
                         .listed = {},
                         .peers = node->peers(),
                         .parameters = {},
                         .bytes = file.site.size()};
  durable.parameters.assign(node->parameters().begin(), node->parameters().end());
  for (const sites::PeerState& peer : durable.peers) {
    durable.listed.push_back(site_rank(peer.name));
  }
  return std::optional(std::move(durable));
}

MassAudit audit_mass(const std::vector<DurableSite>& durable, int sites) {
  std::vector<MassAccount> accounts(static_cast<std::size_t>(sites));
  for (MassAccount& account : accounts) {
    account.peers.resize(accounts.size());
  }
  MassAudit audit;
  for (const DurableSite& site : durable) {
    MassAccount& account = accounts[static_cast<std::size_t>(site.site)];
    account = account_of(site, sites);
    audit.minted += account.minted;
    audit.returned += account.returned;
    audit.held += account.mass;
    audit.worst_error = std::max(audit.worst_error, std::abs(account.imbalance()));
  }
  std::vector<const MassAccount*> all;
  all.reserve(accounts.size());
  for (const MassAccount& account : accounts) {
    all.push_back(&account);
  }
  audit.lost = lost_mass(all);
  audit.under_way = audit.minted + audit.returned - audit.held - audit.lost;
  return audit;
}

}  // namespace sotto::sitelab
