//! Table tests of the transaction steps.
