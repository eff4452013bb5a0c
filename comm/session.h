// The part of a store that belongs to one run.
//
// A store may outlive a run, and what that run left in it with it: a directory, a Redis server.
// Read by the next run, a barrier of the last one looks passed and its models look like news. A
// session keeps runs apart: its keys begin with a mark that node 0 draws, and every node knows that
// the mark is of now, because node 0 named back a number that the node drew itself.
#pragma once

#include <chrono>
#include <memory>

#include <sotto/base/ids.h>
#include <sotto/comm/store.h>

namespace sotto {

/// The session of node `rank` of `nodes` in `store`. Its first use waits, for `patience` at most,
/// until node 0 is there, on node 0 until all are; Fault::deadline then says who did not come, and
/// every use fails with it.
std::shared_ptr<Store> make_session(std::shared_ptr<Store> store, Rank rank, int nodes,
                                    std::chrono::milliseconds patience);

}  // namespace sotto
